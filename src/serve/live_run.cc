#include "serve/live_run.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/values.h"
#include "case/canonical.h"
#include "store/known_deviations.h"
#include "verdict/mode.h"

namespace assay {
namespace {

constexpr auto kInvalid = static_cast<std::size_t>(Outcome::invalid);
constexpr std::size_t kShownText = 500;
constexpr std::size_t kShownCase = 4'000;
constexpr std::size_t kShownMinutes = 2'000;

nlohmann::json counts_json(const OutcomeCounts& counts) {
  nlohmann::json object = nlohmann::json::object();
  for (const OutcomeInfo& each : kOutcomes) {
    const std::uint64_t count = counts[static_cast<std::size_t>(each.outcome)];
    if (count > 0) object[std::string(each.name)] = count;
  }
  return object;
}

// May cut a UTF-8 character; the page's writer replaces the rest of it.
std::string shortened(std::string_view text) { return std::string(text.substr(0, kShownText)); }

// The average milliseconds of a case in each stage.
nlohmann::json stages_json(const StageTimes& times) {
  nlohmann::json list = nlohmann::json::array();
  for (const std::int64_t each : times.ns) {
    list.push_back(
        times.cases > 0 ? static_cast<double>(each) / 1e6 / static_cast<double>(times.cases) : 0.0);
  }
  return list;
}

// The seconds of so many cases in all lanes together, as text reports count them.
double in_lanes(const StageTimes& times, std::uint64_t cases) {
  if (times.cases == 0) return 0;
  return static_cast<double>(times.in_lanes()) / 1e9 * static_cast<double>(cases) /
         static_cast<double>(times.cases);
}

// The LiveRun::kShown rows with the most failures. `rows`: the failures and the JSON of each row.
nlohmann::json worst(std::vector<std::pair<std::uint64_t, nlohmann::json>> rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (rows.size() > LiveRun::kShown) rows.resize(LiveRun::kShown);
  nlohmann::json list = nlohmann::json::array();
  for (auto& [rank, row] : rows) list.push_back(std::move(row));
  return list;
}

}  // namespace

void LiveRun::add(const FinishedCase& finished) {
  tally_.add(traits_of(finished.text), finished);
  if (finished.verdict.outcome == Outcome::skip) count_skipped(finished.verdict.message);
  list(finished);
}

void LiveRun::list(const FinishedCase& finished) {
  const bool failed = info(finished.verdict.outcome).failed;
  if (failed || (finished.verdict.flags != 0 && listed_passed_++ < kListedPassed)) {
    list_.add(finished);
  }
  if (failed) findings_.add(finished);
}

void LiveRun::add(const InvalidLine& line) {
  ++invalid_[key_of(line).api];
  findings_.add(line);
  list_.add(line);
}

LiveRun::Apis LiveRun::apis() const {
  Apis apis;
  for (const auto& [key, sums] : tally_.cases()) {
    OfApi& api = apis[key.traits.api];
    api.outcomes[static_cast<std::size_t>(key.outcome)] += static_cast<std::uint64_t>(sums.cases);
    api.dtypes[key.traits.dtype][static_cast<std::size_t>(key.outcome)] +=
        static_cast<std::uint64_t>(sums.cases);
    api.stages.add(sums.stages);
  }
  return apis;
}

std::uint64_t LiveRun::failed() const { return failures(outcomes()); }

OutcomeCounts LiveRun::outcomes() const {
  OutcomeCounts counts{};
  for (const auto& [key, sums] : tally_.cases()) {
    counts[static_cast<std::size_t>(key.outcome)] += static_cast<std::uint64_t>(sums.cases);
  }
  counts[kInvalid] += invalid_lines();
  return counts;
}

std::uint64_t LiveRun::invalid_lines() const {
  std::uint64_t sum = 0;
  for (const auto& [api, lines] : invalid_) sum += lines;
  return sum;
}

// The known deviations of this run's APIs: {"cases": N, "rows": [[API, "description; …"], …]}.
nlohmann::json LiveRun::known_deviations_json(const Apis& apis) const {
  std::uint64_t cases = 0;
  nlohmann::json rows = nlohmann::json::array();
  const auto all = parse_json(value_at(properties_, std::string(kKnownDeviations)));
  for (const auto& [api, of_api] : apis) {
    const auto found = all.is_object() ? all.find(std::string(api)) : all.end();
    if (found == all.end() || !found->is_array()) continue;
    for (const std::uint64_t count : of_api.outcomes) cases += count;
    std::string words;
    for (const auto& each : *found) {
      if (each.is_string()) words += (words.empty() ? "" : "; ") + each.get<std::string>();
    }
    rows.push_back({std::string(api), words});
  }
  return {{"cases", cases}, {"rows", rows}};
}

nlohmann::json LiveRun::apis_json(Apis apis) const {
  for (const auto& [api, lines] : invalid_) apis[api].outcomes[kInvalid] += lines;
  std::vector<std::pair<std::uint64_t, nlohmann::json>> rows;
  rows.reserve(apis.size());
  for (const auto& [name, api] : apis) {
    nlohmann::json dtypes = nlohmann::json::object();
    for (const auto& [dtype, counts] : api.dtypes) {
      dtypes[dtype.empty() ? "none" : std::string(dtype)] = counts_json(counts);
    }
    rows.emplace_back(failures(api.outcomes),
                      nlohmann::json{{"api", std::string(name)},
                                     {"dtypes", std::move(dtypes)},
                                     {"outcomes", counts_json(api.outcomes)},
                                     {"failed", failures(api.outcomes)},
                                     {"seconds", in_lanes(api.stages, total(api.outcomes))},
                                     {"timed", api.stages.cases},
                                     {"stage_ms", stages_json(api.stages)}});
  }
  return worst(std::move(rows));
}

nlohmann::json LiveRun::dtypes_json() const {
  std::map<std::string_view, OutcomeCounts> dtypes;
  for (const auto& [key, sums] : tally_.cases()) {
    dtypes[key.traits.dtype][static_cast<std::size_t>(key.outcome)] +=
        static_cast<std::uint64_t>(sums.cases);
  }
  std::vector<std::pair<std::uint64_t, nlohmann::json>> rows;
  rows.reserve(dtypes.size());
  for (const auto& [name, counts] : dtypes) {
    rows.emplace_back(failures(counts),
                      nlohmann::json{{"dtype", name.empty() ? "none" : std::string(name)},
                                     {"outcomes", counts_json(counts)},
                                     {"failed", failures(counts)}});
  }
  return worst(std::move(rows));
}

nlohmann::json LiveRun::sizes_json() const {
  std::array<StageTimes, kSizes.size()> sizes{};
  std::array<std::int64_t, kSizes.size()> cases{};
  for (const auto& [key, sums] : tally_.cases()) {
    const auto size = std::min<std::size_t>(key.traits.size, sizes.size() - 1);
    sizes[size].add(sums.stages);
    cases[size] += sums.cases;
  }
  nlohmann::json list = nlohmann::json::array();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].cases == 0) continue;
    list.push_back({{"size", kSizes[i]},
                    {"cases", cases[i]},
                    {"timed", sizes[i].cases},
                    {"seconds", in_lanes(sizes[i], static_cast<std::uint64_t>(cases[i]))},
                    {"stage_ms", stages_json(sizes[i])}});
  }
  return list;
}

nlohmann::json LiveRun::found_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& each : findings()) {
    if (list.size() == kShown) break;
    nlohmann::json& finding = list.emplace_back(finding_json(each));
    finding["text"] = each.text.substr(0, kShownCase);
    finding["message"] = shortened(each.message);
    finding["first_ms"] = each.first_ms;
    finding["last_ms"] = each.last_ms;
  }
  return list;
}

// Why cases, or value regimes of cases, were not judged: {"skipped": [[reason, cases], …],
// "regimes": [[regime, reason, cases], …]}.
nlohmann::json LiveRun::not_judged_json() const {
  nlohmann::json skipped = nlohmann::json::array();
  for (const auto& [reason, cases] : skipped_) skipped.push_back({reason, cases});
  nlohmann::json regimes = nlohmann::json::array();
  for (const auto& [key, cases] : tally_.not_judged()) {
    regimes.push_back({key.first, key.second, cases});
  }
  return {{"skipped", skipped}, {"regimes", regimes}};
}

// [[milliseconds since 1970, cases, failed], …] for each minute, or several minutes of a long run.
nlohmann::json LiveRun::history_json() const {
  const std::map<std::int64_t, MinuteSums>& minutes = tally_.minutes();
  if (minutes.empty()) return nlohmann::json::array();
  const std::int64_t first = minutes.begin()->first;
  const std::int64_t span = minutes.rbegin()->first - first + 1;
  const std::int64_t step = 1 + span / static_cast<std::int64_t>(kShownMinutes);
  std::map<std::int64_t, MinuteSums> steps;
  for (const auto& [minute, counts] : minutes) {
    MinuteSums& sum = steps[first + (minute - first) / step * step];
    sum.cases += counts.cases;
    sum.failed += counts.failed;
  }
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [minute, counts] : steps) {
    list.push_back({minute * kMinuteMs, counts.cases, counts.failed});
  }
  return list;
}

nlohmann::json LiveRun::json() const {
  nlohmann::json meanings = nlohmann::json::array();
  Properties facts = properties_;
  const std::string of_mode = value_at(facts, "mode");
  for (const OutcomeInfo& each : kOutcomes) {
    meanings.push_back(
        {std::string(each.name), each.failed, std::string(meaning_in(of_mode, each.outcome))});
  }
  facts.erase(std::string(kKnownDeviations));
  const Apis by_api = apis();
  const OutcomeCounts counts = outcomes();
  return {{"read", cases()},
          {"properties", facts},
          {"accommodated", known_deviations_json(by_api)},
          {"failed", failures(counts)},
          {"outcomes", counts_json(counts)},
          {"meanings", meanings},
          {"apis", apis_json(by_api)},
          {"dtypes", dtypes_json()},
          {"findings", found_json()},
          {"not_judged", not_judged_json()},
          {"history", history_json()},
          {"stages", kStages},
          {"sizes", sizes_json()},
          {"listed", list_.cases()},
          {"of_part", CaseList::kOfPart},
          {"left_out", list_.left_out() + unlisted_},
          {"rerun", rerun_command("@", properties_)}};  // the page replaces "@" by a case
}

RunTotals LiveRun::totals(std::string name) const {
  RunTotals totals;
  totals.name = std::move(name);
  totals.properties = properties_;
  totals.count(tally_);
  const std::uint64_t invalid = invalid_lines();
  if (invalid > 0) totals.outcomes.emplace(assay::name(Outcome::invalid), invalid);
  return totals;
}

Result<LiveRun> live_run_of(RunReader& run, std::uint64_t most, const RunComparison* comparison) {
  ASSAY_TRY(LiveRun::Properties properties, run.properties());
  LiveRun grown(std::move(properties), comparison);
  ASSAY_TRY(Tally tally, run.tally());
  grown.set_tally(std::move(tally));
  const RunQuery query{.rows = RunQuery::Rows::listed, .most = most, .records = false};
  const RunQuery skips{.rows = RunQuery::Rows::outcome, .outcome = Outcome::skip, .records = false};
  std::uint64_t listed = 0;
  ASSAY_CHECK(run.each(skips, [&](const FinishedCase& each) -> Status {
    grown.count_skipped(each.verdict.message);
    return {};
  }));
  ASSAY_CHECK(run.each(query, [&](const FinishedCase& each) -> Status {
    grown.list(each);
    listed += info(each.verdict.outcome).failed ? 1 : 0;
    return {};
  }));
  const std::uint64_t failed = grown.failed();
  grown.set_unlisted(failed - std::min(listed, failed));
  ASSAY_CHECK(run.each_invalid([&](const InvalidLine& line) -> Status {
    grown.add(line);
    return {};
  }));
  std::vector<Finding> findings = grown.findings();
  ASSAY_CHECK(add_elements(run, findings));
  grown.set_findings(std::move(findings));
  return grown;
}

}  // namespace assay
