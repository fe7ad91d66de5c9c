#include "report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "case/canonical.h"
#include "report/load_past.h"
#include "store/accommodations.h"
#include "store/learned_costs.h"
#include "store/open_store.h"
#include "store/quick_reader.h"
#include "verdict/judge.h"
#include "wire/settings.h"

namespace assay {
namespace {

// A case is called slower from this factor and this many seconds on: less is noise of a machine
// that does other things as well.
constexpr double kSlowerFactor = 2;
constexpr double kSlowerSeconds = 0.1;

struct ChangeInfo {
  Change change;
  std::string_view name;  // in JSON
  std::string_view meaning;
};

constexpr std::array<ChangeInfo, 4> kChanges{{
    {Change::new_failure, "new_failures", "new failures"},
    {Change::lost, "lost", "no longer tested"},
    {Change::mended, "mended", "mended"},
    {Change::slower, "slower", "slower in the test lane"},
}};

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

Result<std::vector<SettingChange>> changed_settings(
    const std::map<std::string, std::string>& now, const std::map<std::string, std::string>& before,
    const std::string& past) {
  std::vector<SettingChange> changes;
  const auto value = [](const auto& all, const std::string& key) {
    const auto found = all.find(key);
    return found == all.end() ? std::string("(not kept)") : found->second;
  };
  std::map<std::string, std::string> all = now;
  all.insert(before.begin(), before.end());
  for (const auto& [key, ignored] : all) {
    if (key.starts_with(kRerunFlag) || key == kAccommodations) continue;
    if (value(now, key) == value(before, key)) continue;
    if (key == "version.canonical") {
      return usage_error(fmt::format(
          "{} names its cases in another way (version.canonical {}, this run {}): write "
          "it again with an assay of this version",
          past, value(before, key), value(now, key)));
    }
    changes.push_back({key, value(before, key), value(now, key), bearing_of(key)});
  }
  return changes;
}

// Both runs had a reference lane, and of the same build in the same place: what stands there is the
// same yardstick.
bool same_reference(const std::map<std::string, std::string>& now,
                    const std::map<std::string, std::string>& before) {
  const auto value = [](const auto& all, const std::string& key) {
    const auto found = all.find(key);
    return found == all.end() ? std::string() : found->second;
  };
  const std::string label = value(now, "reference.lane");
  if (value(now, label).empty()) return false;
  const auto same = [&](const std::string& key) { return value(now, key) == value(before, key); };
  return same(label) && same("reference.lane") && same("reference.device") &&
         same("reference.execution");
}

bool is_tested(Outcome outcome) {
  return outcome != Outcome::unsupported && outcome != Outcome::skip &&
         outcome != Outcome::no_kernel;
}

// Compares a case with what it was; before: what a missing one counts as.
std::optional<Change> change_of(const Verdict& now, const std::optional<PastCase>& before,
                                bool strict) {
  Verdict past;
  if (before) past.outcome = before->outcome;
  if (before && before->flaky) past.flags = kFlaky;
  const bool failed = before && counts_as_failure(past, strict);
  if (counts_as_failure(now, strict)) {
    const bool same = failed && past.outcome == now.outcome;
    return same ? std::nullopt : std::optional(Change::new_failure);
  }
  const bool tested = before && is_tested(past.outcome);
  if (tested && !is_tested(now.outcome)) return Change::lost;
  if (before && past.outcome == Outcome::pass && now.outcome == Outcome::rejected) {
    return Change::lost;
  }
  if (failed) return Change::mended;
  return std::nullopt;
}

class Comparer {
 public:
  Comparer(const PastRun& past, RunComparison& comparison) : past_(past), comparison_(comparison) {}

  void take(std::uint64_t id, std::string_view text, const Verdict& verdict,
            std::span<const std::uint8_t> record) {
    const std::optional<PastCase> before = find(id);
    if (!before) ++*comparison_.only_now;
    take(id, text, verdict, record, before);
  }

  // With what it was.
  void take(std::uint64_t id, std::string_view text, const Verdict& verdict,
            std::span<const std::uint8_t> record, const std::optional<PastCase>& before) {
    const double seconds = seconds_of_test(record);
    const bool timed = before && !before->timings.empty();
    if (timed) comparison_.speed.take(id, text, timings_of(record), before->timings);
    const auto change = change_of(verdict, before, comparison_.strict);
    if (change) {
      add(*change, id, text, verdict, before);
    } else if (counts_as_failure(verdict, comparison_.strict)) {
      ++comparison_.known;
    } else if (before && !timed && before->seconds > 0 &&
               seconds > before->seconds * kSlowerFactor &&
               seconds > before->seconds + kSlowerSeconds) {
      add(Change::slower, id, text, verdict, before);
      comparison_.changes.back().seconds_before = before->seconds;
      comparison_.changes.back().seconds_now = seconds;
    }
  }

  // Of what the past is left with.
  void finish() {
    if (comparison_.only_before) *comparison_.only_before += past_.cases.size() - met_;
  }

 private:
  std::optional<PastCase> find(std::uint64_t id) {
    const auto found = past_.cases.find(id);
    if (found != past_.cases.end()) {
      ++met_;
      return found->second;
    }
    if (past_.only_what_did_not_pass) return PastCase{};
    return std::nullopt;
  }

  void add(Change change, std::uint64_t id, std::string_view text, const Verdict& verdict,
           const std::optional<PastCase>& before) {
    ChangedCase& changed = comparison_.changes.emplace_back();
    changed.change = change;
    changed.id = id;
    changed.text = text;
    changed.now = verdict.outcome;
    changed.before = !before ? "not there" : before->flaky ? "flaky" : name(before->outcome);
    changed.message = verdict.message;
  }

  const PastRun& past_;
  RunComparison& comparison_;
  std::uint64_t met_ = 0;  // cases of the past that the run has
};

std::string changed_line(const ChangedCase& changed) {
  if (changed.change == Change::slower) {
    return fmt::format("    {} {:.2f} s, was {:.2f} s  {}\n", format_case_id(changed.id),
                       changed.seconds_now, changed.seconds_before, changed.text);
  }
  std::string line = fmt::format("    {} {}, was {}  {}\n", format_case_id(changed.id),
                                 name(changed.now), changed.before, changed.text);
  if (changed.change != Change::mended && !changed.message.empty()) {
    line += fmt::format("        {}\n", changed.message);
  }
  return line;
}

// Lines that are no cases.
Status take_invalid(RunReader& now, Comparer& comparer) {
  Verdict invalid;
  invalid.outcome = Outcome::invalid;
  return now.each_invalid([&](const InvalidLine& line) -> Status {
    invalid.message = fmt::format("{}: {}", line.where, line.message);
    comparer.take(invalid_line_id(line), line.text, invalid, {});
    return {};
  });
}

// Case by case.
Status read_changes(RunReader& now, const PastRun& past, RunComparison& comparison) {
  PastRun loaded;
  if (!past.database.empty()) {
    loaded = past;
    ASSAY_CHECK(load_cases(loaded));
  }
  Comparer comparer(past.database.empty() ? past : loaded, comparison);
  ASSAY_CHECK(now.each_finished([&](const FinishedCase& finished) -> Status {
    comparer.take(finished.id, finished.text, finished.verdict, finished.record);
    return {};
  }));
  ASSAY_CHECK(take_invalid(now, comparer));
  comparer.finish();
  comparison.speed.finish();
  return {};
}

// What fails in a run and is no new failure fails as before.
Result<std::uint64_t> known_failures(RunReader& now, const RunComparison& comparison) {
  ASSAY_TRY(const Tally tally, now.tally());
  std::uint64_t failed = 0;
  for (const auto& [key, sums] : tally.cases()) {
    Verdict verdict;
    verdict.outcome = key.outcome;
    verdict.flags = key.flags;
    if (counts_as_failure(verdict, comparison.strict)) {
      failed += static_cast<std::uint64_t>(sums.cases);
    }
  }
  ASSAY_CHECK(now.each_invalid([&](const InvalidLine&) -> Status {
    ++failed;
    return {};
  }));
  return failed - std::min(failed, comparison.count(Change::new_failure));
}

std::optional<PastCase> past_case(const DifferentCase& different) {
  if (!different.before) return std::nullopt;
  return PastCase{different.before->outcome,
                  different.before->flaky,
                  {},
                  static_cast<float>(seconds_of_test(different.record_before))};
}

// With another run of the same database; false: it is not one.
Result<bool> look_up_run(RunReader& now, QuickReader& quick, const PastRun& past,
                         RunComparison& comparison) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(past.database, StoreMode::read));
  QuickReader* other = store->quick();
  if (other == nullptr) return false;
  PastRun lines;  // that are no cases
  ASSAY_CHECK(store->each_invalid([&](const InvalidLine& line) -> Status {
    lines.cases[invalid_line_id(line)] = {Outcome::invalid, false, {}, 0};
    return {};
  }));
  Comparer comparer(lines, comparison);
  ASSAY_TRY(const bool together,
            quick.each_different(*other, [&](const DifferentCase& each) -> Status {
              const FinishedCase& case_now = each.now;
              comparer.take(case_now.id, case_now.text, case_now.verdict, case_now.record,
                            past_case(each));
              return {};
            }));
  if (!together) return false;
  ASSAY_TRY(const auto both, quick.finished_in_both(*other));
  if (both) {
    ASSAY_TRY(const StoreCounts own, now.counts());
    ASSAY_TRY(const StoreCounts its, store->counts());
    comparison.only_now = own.finished - std::min(*both, own.finished);
    comparison.only_before = its.finished - std::min(*both, its.finished);
  }
  ASSAY_CHECK(take_invalid(now, comparer));
  comparer.finish();
  if (!both) comparison.only_now = comparison.only_before = std::nullopt;
  comparison.slower_from_s = static_cast<double>(kExpensiveUs) / 1e6;
  return true;
}

// With a baseline.
Status look_up_baseline(RunReader& now, QuickReader& quick, const PastRun& past,
                        RunComparison& comparison) {
  std::vector<KnownCase> known;
  known.reserve(past.cases.size());
  PastRun lines;  // that were no cases
  lines.only_what_did_not_pass = true;
  for (const auto& [id, stood] : past.cases) {
    if (stood.outcome == Outcome::invalid) {
      lines.cases[id] = stood;
    } else {
      known.push_back({id, stood.outcome, stood.flaky});
    }
  }
  Comparer comparer(lines, comparison);
  ASSAY_CHECK(quick.each_different(known, [&](const DifferentCase& each) -> Status {
    const FinishedCase& case_now = each.now;
    comparer.take(case_now.id, case_now.text, case_now.verdict, {},
                  past_case(each).value_or(PastCase{}));
    return {};
  }));
  ASSAY_TRY(const std::uint64_t both, quick.finished_in_both(known));
  comparison.only_before = known.size() - std::min<std::uint64_t>(both, known.size());
  ASSAY_CHECK(take_invalid(now, comparer));
  comparer.finish();
  return {};
}

// Where the store can say what differs; false: nothing was compared.
Result<bool> look_up_changes(RunReader& now, QuickReader& quick, const PastRun& past,
                             RunComparison& comparison) {
  if (!past.database.empty()) {
    ASSAY_TRY(const bool together, look_up_run(now, quick, past, comparison));
    if (!together) return false;
  } else if (past.only_what_did_not_pass) {
    ASSAY_CHECK(look_up_baseline(now, quick, past, comparison));
  } else {
    return false;
  }
  ASSAY_TRY(comparison.known, known_failures(now, comparison));
  return true;
}

// In JSON.
nlohmann::json counted(const std::optional<std::uint64_t>& cases) {
  return cases ? nlohmann::json(*cases) : nlohmann::json();
}

}  // namespace

bool counts_as_failure(const Verdict& verdict, bool strict) {
  return info(verdict.outcome).failed || (strict && (verdict.flags & kFlaky) != 0);
}

std::uint64_t RunComparison::count(Change change) const {
  return static_cast<std::uint64_t>(
      std::count_if(changes.begin(), changes.end(),
                    [change](const ChangedCase& changed) { return changed.change == change; }));
}

Result<RunComparison> compare_runs(RunReader& now, const PastRun& past, bool strict) {
  RunComparison comparison;
  comparison.past = past.name;
  comparison.strict = strict;
  ASSAY_TRY(const auto properties, now.properties());
  ASSAY_TRY(comparison.settings, changed_settings(properties, past.properties, past.name));
  ASSAY_TRY(const wire::CaseSettingsT settings_now, wire::settings_of(properties));
  comparison.speed =
      SpeedComparison(same_reference(properties, past.properties), settings_now.speed_margin);
  ASSAY_TRY(const Rules rules, Rules::of(settings_now));
  QuickReader* quick = rules.agreement == Agreement::speed ? nullptr : now.quick();
  bool looked_up = false;
  if (quick != nullptr) {
    ASSAY_TRY(looked_up, look_up_changes(now, *quick, past, comparison));
  }
  if (!looked_up) ASSAY_CHECK(read_changes(now, past, comparison));
  std::sort(comparison.changes.begin(), comparison.changes.end(),
            [](const ChangedCase& a, const ChangedCase& b) {
              return std::tie(a.change, a.text) < std::tie(b.change, b.text);
            });
  return comparison;
}

std::vector<std::uint64_t> worse_cases(const RunComparison& comparison, std::uint64_t most) {
  std::vector<std::uint64_t> ids;
  for (const Change kind : {Change::new_failure, Change::lost}) {
    std::uint64_t taken = 0;
    for (const ChangedCase& changed : comparison.changes) {
      if (changed.change != kind || taken++ >= most) continue;
      ids.push_back(changed.id);
    }
  }
  return ids;
}

std::string comparison_table(const RunComparison& comparison) {
  std::string table = fmt::format("against {}:\n", comparison.past);
  for (const SettingChange& setting : comparison.settings) {
    table += fmt::format(
        "  {}: {} then, {} now{}\n", setting.key, setting.before, setting.now,
        setting.bearing.empty()
            ? ""
            : fmt::format(" ({}: a verdict may differ for that alone)", setting.bearing));
  }
  for (const ChangeInfo& change : kChanges) {
    // Of what is timed parts are compared, below.
    if (change.change == Change::slower && !comparison.speed.empty()) continue;
    const std::uint64_t count = comparison.count(change.change);
    const bool of_some = change.change == Change::slower && comparison.slower_from_s > 0;
    table += fmt::format(
        "  {:>8}  {}{}\n", count, change.meaning,
        of_some ? fmt::format(" (of cases that took {} s and more)", comparison.slower_from_s)
                : "");
    std::size_t shown = 0;
    for (const ChangedCase& changed : comparison.changes) {
      if (changed.change == change.change && shown++ < kShownOfEach) table += changed_line(changed);
    }
    if (shown > kShownOfEach) {
      table += fmt::format("    … and {} more (--json has all)\n", shown - kShownOfEach);
    }
  }
  table += fmt::format("  {:>8}  fail as before\n", comparison.known);
  table += comparison.speed.table();
  if (comparison.only_now.value_or(0) > 0)
    table += fmt::format("  {:>8}  cases are new\n", *comparison.only_now);
  if (comparison.only_before.value_or(0) > 0) {
    table += fmt::format("  {:>8}  cases are not in this run\n", *comparison.only_before);
  }
  if (!comparison.only_before)
    table += "            cases that only one of the two has: not counted\n";
  return table;
}

nlohmann::json comparison_json(const RunComparison& comparison) {
  nlohmann::json settings = nlohmann::json::array();
  for (const SettingChange& setting : comparison.settings) {
    settings.push_back({{"key", setting.key},
                        {"before", setting.before},
                        {"now", setting.now},
                        {"bearing", setting.bearing}});
  }
  nlohmann::json object = {{"past", comparison.past},
                           {"settings", settings},
                           {"known", comparison.known},
                           {"only_before", counted(comparison.only_before)},
                           {"only_now", counted(comparison.only_now)}};
  if (comparison.slower_from_s > 0) object["slower_from_seconds"] = comparison.slower_from_s;
  if (!comparison.speed.empty()) object["speed"] = comparison.speed.json();
  for (const ChangeInfo& change : kChanges) object[change.name] = nlohmann::json::array();
  for (const ChangedCase& changed : comparison.changes) {
    nlohmann::json entry = {{"id", format_case_id(changed.id)},
                            {"case", changed.text},
                            {"outcome", name(changed.now)},
                            {"before", changed.before},
                            {"message", changed.message}};
    if (changed.change == Change::slower) {
      entry["seconds"] = changed.seconds_now;
      entry["seconds_before"] = changed.seconds_before;
    }
    object[kChanges[static_cast<std::size_t>(changed.change)].name].push_back(std::move(entry));
  }
  return object;
}

}  // namespace assay
