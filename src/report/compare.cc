#include "report/compare.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>
#include <memory>
#include <tuple>

#include "base/values.h"
#include "case/parser.h"
#include "report/run_report.h"
#include "store/known_deviations.h"
#include "store/open_store.h"
#include "verdict/judge.h"
#include "wire/settings.h"

namespace assay {
namespace {

// A fault has grown if its largest error is this many steps larger (8 steps: a factor of 10), …
constexpr int kStepsOfGrowth = 8;
// … or if more cases of the API have it, and their share is both twice as large and larger by a
// tenth of the API's cases.
constexpr double kShareFactor = 2;
constexpr double kShareMargin = 0.1;

// An API is slower if its time grew by both this factor and this many seconds. Less is noise of a
// busy machine.
constexpr double kSlowerFactor = 2;
constexpr double kSlowerSeconds = 0.1;

std::string bearing_of(std::string_view key) {
  constexpr std::array<std::string_view, 3> kInputs{"seed", "values", "version.fill"};
  constexpr std::array<std::string_view, 7> kJudgement{"atol",
                                                       "rtol",
                                                       "error_bar",
                                                       "speed_margin",
                                                       "version.measurement",
                                                       "version.policies",
                                                       "version.record"};
  const auto is_in = [&](const auto& keys) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  if (is_in(kInputs)) return "other inputs";
  if (is_in(kJudgement)) return "judged in another way";
  if (key == "mode" || key == "backward" || key.starts_with("test.") ||
      key.starts_with("reference.")) {
    return "another question";
  }
  return {};
}

Result<std::vector<SettingChange>> changed_settings(const std::map<std::string, std::string>& now,
                                                    const PastRun& past) {
  const std::map<std::string, std::string>& before = past.properties;
  std::vector<SettingChange> changes;
  const auto value = [](const auto& all, const std::string& key) {
    return value_at(all, key, "(not kept)");
  };
  std::map<std::string, std::string> all = before;
  // What a baseline file does not state may be anything.
  if (!past.is_baseline) all.insert(now.begin(), now.end());
  for (const auto& [key, ignored] : all) {
    if (key.starts_with(kRerunFlag) || key == kKnownDeviations) continue;
    if (value(now, key) == value(before, key)) continue;
    if (key == "version.canonical") {
      return usage_error(
          fmt::format("the case ids of {} cannot be compared with those of this run "
                      "(version.canonical {} and {}): write "
                      "it again with an assay of this version",
                      past.name, value(before, key), value(now, key)));
    }
    changes.push_back({key, value(before, key), value(now, key), bearing_of(key)});
  }
  return changes;
}

using Properties = std::map<std::string, std::string>;

// The builds of the run's lanes, and of those lanes of the past run that had the same roles.
std::vector<ComparedBuild> compared_builds(const Properties& now, const Properties& before) {
  std::vector<ComparedBuild> builds;
  for (const char* role : {"test.lane", "reference.lane"}) {
    const auto lane = now.find(role);
    if (lane == now.end()) continue;
    const std::string past_label = value_at(before, role, lane->second);
    builds.push_back({lane->second, build_of(before, past_label), build_of(now, lane->second)});
  }
  return builds;
}

// Whether both runs had a reference lane with the same build, device and execution.
bool same_reference(const std::map<std::string, std::string>& now,
                    const std::map<std::string, std::string>& before) {
  const std::string label = value_at(now, "reference.lane");
  if (value_at(now, label).empty()) return false;
  const auto same = [&](const std::string& key) {
    return value_at(now, key) == value_at(before, key);
  };
  return same(label) && same("reference.lane") && same("reference.device") &&
         same("reference.execution");
}

// The names in `now` that are not in `before`; none if `before` is empty, which means unknown.
std::vector<std::string> added_names(const std::set<std::string>& now,
                                     const std::set<std::string>& before) {
  std::vector<std::string> added;
  if (before.empty()) return added;
  std::set_difference(now.begin(), now.end(), before.begin(), before.end(),
                      std::back_inserter(added));
  return added;
}

double share(std::int64_t cases, std::int64_t of) {
  return of > 0 ? static_cast<double>(cases) / static_cast<double>(of) : 0;
}

bool error_grew(const FaultExtent& now, const FaultExtent& before) {
  return before.error_step > 0 && now.error_step >= before.error_step + kStepsOfGrowth;
}

// A description of how a fault grew; empty if it did not.
std::string growth_of(const FaultExtent& now, const FaultExtent& before) {
  std::vector<std::string> words;
  const auto values = added_names(now.values, before.values);
  const auto dtypes = added_names(now.dtypes, before.dtypes);
  if (!values.empty())
    words.push_back(fmt::format("also under {} values", fmt::join(values, ", ")));
  if (!dtypes.empty()) words.push_back(fmt::format("also {}", fmt::join(dtypes, ", ")));
  if (error_grew(now, before)) {
    words.push_back(fmt::format("errors of {:.3g} times the bar instead of {:.3g}",
                                error_of_step(now.error_step), error_of_step(before.error_step)));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

// Today's date in UTC.
std::string today() { return fmt::format("{:%F}", fmt::gmtime(std::time(nullptr))); }

ComparedFault compare_fault(const FaultSums& now, std::int64_t judged, const KnownFault* before) {
  ComparedFault compared;
  compared.now = now;
  if (before == nullptr) {
    compared.state = FaultState::added;
    return compared;
  }
  compared.before = *before;
  if (!before->until.empty() && before->until < today()) {
    compared.state = FaultState::added;
    compared.why = fmt::format("it was known until {}{}{}", before->until,
                               before->owner.empty() ? "" : "; owner: ", before->owner);
    return compared;
  }
  compared.why = growth_of(now.extent, before->sums.extent);
  const double share_before = share(before->sums.cases, before->judged);
  const double share_now = share(now.cases, judged);
  compared.by_share =
      share_before > 0 && now.cases > before->sums.cases &&
      share_now > std::max(kShareFactor * share_before, share_before + kShareMargin);
  if (compared.by_share) {
    compared.why +=
        fmt::format("{}{} of {} cases instead of {} of {}", compared.why.empty() ? "" : ", ",
                    now.cases, judged, before->sums.cases, before->judged);
  }
  compared.state = compared.why.empty() ? FaultState::known : FaultState::grown;
  return compared;
}

// Whether a fault counts. Flaky passes count only with --strict.
bool counts(const FaultKey& key, bool strict) { return strict || info(key.outcome).failed; }

void compare_faults(const RunFaults& now, const PastRun& past, RunComparison& comparison) {
  for (const auto& [key, sums] : now.faults) {
    if (!counts(key, comparison.strict)) continue;
    const auto known = past.faults.find(key);
    comparison.faults[key] = compare_fault(sums, value_at(now.judged, key.api),
                                           known == past.faults.end() ? nullptr : &known->second);
  }
  for (const auto& [key, known] : past.faults) {
    if (!counts(key, comparison.strict) || now.faults.contains(key)) continue;
    if (known.sums.cases == 0) continue;
    if (now.covers(key.api)) comparison.fixed[key] = known;
  }
}

bool fell(std::int64_t now, std::int64_t before, const Coverage& of_now,
          const Coverage& of_before) {
  return now > before && share(now, of_now.cases) > share(before, of_before.cases);
}

void compare_coverage(const RunFaults& now, const PastRun& past, RunComparison& comparison) {
  for (const auto& [key, coverage] : now.coverage) {
    const auto found = past.coverage.find(key);
    const bool there = found != past.coverage.end();
    if (!there && !past.coverage_is_complete) continue;
    const Coverage before = there ? found->second : Coverage();
    if (fell(coverage.not_judged, before.not_judged, coverage, before)) {
      comparison.lost.push_back({key.first, key.second, false, before, coverage});
    }
    if (fell(coverage.rejected, before.rejected, coverage, before)) {
      comparison.lost.push_back({key.first, key.second, true, before, coverage});
    }
  }
}

double seconds_of(const TestTime& time) {
  return time.cases > 0 ? static_cast<double>(time.ns) / 1e9 / static_cast<double>(time.cases) : 0;
}

void compare_times(const RunFaults& now, const PastRun& past, RunComparison& comparison) {
  for (const auto& [api, time] : now.times) {
    const auto found = past.times.find(api);
    if (found == past.times.end()) continue;
    const double before_s = seconds_of(found->second);
    const double now_s = seconds_of(time);
    if (before_s > 0 && now_s > kSlowerFactor * before_s && now_s > before_s + kSlowerSeconds) {
      comparison.slower.push_back({api, before_s, now_s});
    }
  }
}

// Compares the timings of both runs, case by case.
Status compare_speed(RunReader& now, const PastRun& past, RunComparison& comparison) {
  if (past.run.empty()) return {};
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(past.run, StoreMode::read));
  std::map<std::uint64_t, std::vector<TimedPart>> before;
  ASSAY_CHECK(store->each_finished([&](const FinishedCase& finished) -> Status {
    before[finished.id] = timings_of(finished.record);
    return {};
  }));
  ASSAY_CHECK(now.each_finished([&](const FinishedCase& finished) -> Status {
    const auto found = before.find(finished.id);
    if (found == before.end() || found->second.empty()) return {};
    comparison.speed.take(finished.id, finished.text, timings_of(finished.record), found->second);
    return {};
  }));
  comparison.speed.finish();
  return {};
}

// Whether the case, which has the fault in this extent, shows that it is new or grew.
bool shows_change(const ComparedFault& compared, const FaultExtent& extent) {
  if (compared.state == FaultState::added || compared.by_share) return true;
  return compared.state == FaultState::grown &&
         !growth_of(extent, compared.before.sums.extent).empty();
}

RunQuery failures(bool strict) {
  return {.rows = strict ? RunQuery::Rows::listed : RunQuery::Rows::failed, .records = false};
}

Status find_examples(RunReader& now, RunComparison& comparison) {
  ASSAY_CHECK(now.each(failures(comparison.strict), [&](const FinishedCase& finished) -> Status {
    for (const auto& [key, extent] : faults_of_case(traits_of(finished.text), finished.verdict)) {
      const auto found = comparison.faults.find(key);
      if (found == comparison.faults.end() || !shows_change(found->second, extent)) continue;
      FaultExample& example = found->second.example;
      const std::uint64_t elements = elements_of(finished.text);
      if (!example.text.empty() &&
          std::tie(example.elements, example.text) <= std::make_tuple(elements, finished.text)) {
        continue;
      }
      example = {finished.id, elements, std::string(finished.text),
                 message_of(key, finished.verdict)};
    }
    return {};
  }));
  return now.each_invalid([&](const InvalidLine& line) -> Status {
    const auto found = comparison.faults.find(key_of(line));
    if (found == comparison.faults.end() || !found->second.example.text.empty()) return {};
    found->second.example = {invalid_line_id(line), 0, line.text,
                             fmt::format("{}: {}", line.where, line.message)};
    return {};
  });
}

}  // namespace

bool counts_as_failure(const Verdict& verdict, bool strict) {
  return info(verdict.outcome).failed || (strict && (verdict.flags & kFlaky) != 0);
}

std::uint64_t elements_of(std::string_view text) {
  Case parsed;
  return parse_case(text, parsed) ? parsed.total_elements() : 0;
}

const Fault* find_fault(const FaultKey& key, const Verdict& verdict) {
  const auto found = std::ranges::find_if(verdict.faults, [&](const Fault& fault) {
    return fault.outcome == key.outcome && location_of(fault) == key.where &&
           manifestation_of(fault) == key.how;
  });
  return found == verdict.faults.end() ? nullptr : &*found;
}

std::string message_of(const FaultKey& key, const Verdict& verdict) {
  const Fault* fault = find_fault(key, verdict);
  if (fault == nullptr || fault->message.empty()) return verdict.message;
  return fault->values.empty() || fault->values == "usual"
             ? fault->message
             : fmt::format("{} values: {}", fault->values, fault->message);
}

std::uint64_t RunComparison::count(FaultState state) const {
  return static_cast<std::uint64_t>(
      std::count_if(faults.begin(), faults.end(),
                    [state](const auto& each) { return each.second.state == state; }));
}

FaultState RunComparison::state_of(const FinishedCase& finished) const {
  FaultState worst = FaultState::known;
  for (const auto& [key, extent] : faults_of_case(traits_of(finished.text), finished.verdict)) {
    const auto found = faults.find(key);
    if (found == faults.end() || !shows_change(found->second, extent)) continue;
    worst = std::min(worst, found->second.state);
  }
  return worst;
}

Result<RunComparison> compare_runs(RunReader& now, const PastRun& past, bool strict) {
  RunComparison comparison;
  comparison.past = past.name;
  comparison.strict = strict;
  ASSAY_TRY(const auto properties, now.properties());
  ASSAY_TRY(comparison.settings, changed_settings(properties, past));
  ASSAY_TRY(const wire::CaseSettingsT settings, wire::settings_of(properties));
  comparison.builds = compared_builds(properties, past.properties);
  std::erase_if(comparison.settings, [&](const SettingChange& change) {
    return std::ranges::any_of(comparison.builds, [&](const ComparedBuild& build) {
      return change.key == build.lane || change.key == build.lane + ".build";
    });
  });
  comparison.speed =
      SpeedComparison(same_reference(properties, past.properties), settings.speed_margin);
  ASSAY_TRY(const Rules rules, Rules::of(settings));
  ASSAY_TRY(const RunFaults found, faults_of_run(now));
  compare_faults(found, past, comparison);
  comparison.notice = past.notice;
  compare_coverage(found, past, comparison);
  compare_times(found, past, comparison);
  if (rules.agreement == Agreement::speed) ASSAY_CHECK(compare_speed(now, past, comparison));
  if (comparison.worse()) ASSAY_CHECK(find_examples(now, comparison));
  return comparison;
}

}  // namespace assay
