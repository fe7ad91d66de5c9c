#include "serve/live_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "case/canonical.h"
#include "store/accommodations.h"

namespace assay {
namespace {

constexpr std::int64_t kMinuteMs = 60'000;
constexpr std::size_t kShownText = 500;
constexpr std::size_t kShownMinutes = 2'000;

std::uint64_t failures(const OutcomeCounts& counts) {
  std::uint64_t sum = 0;
  for (const OutcomeInfo& each : kOutcomes) {
    if (each.failed) sum += counts[static_cast<std::size_t>(each.outcome)];
  }
  return sum;
}

nlohmann::json counts_json(const OutcomeCounts& counts) {
  nlohmann::json object = nlohmann::json::object();
  for (const OutcomeInfo& each : kOutcomes) {
    const std::uint64_t count = counts[static_cast<std::size_t>(each.outcome)];
    if (count > 0) object[std::string(each.name)] = count;
  }
  return object;
}

// No half of a character: what is cut there is replaced when the page is written.
std::string shortened(std::string_view text) { return std::string(text.substr(0, kShownText)); }

// Rows with most failures first, and no more than a page can show.
nlohmann::json worst(std::vector<std::pair<std::uint64_t, nlohmann::json>> rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (rows.size() > LiveRun::kShown) rows.resize(LiveRun::kShown);
  nlohmann::json list = nlohmann::json::array();
  for (auto& [rank, row] : rows) list.push_back(std::move(row));
  return list;
}

}  // namespace

std::string_view first_dtype(std::string_view case_text) {
  const std::size_t tensor = case_text.find("Tensor(");
  const std::size_t open = tensor == std::string_view::npos ? tensor : case_text.find('"', tensor);
  if (open == std::string_view::npos) return {};
  const std::size_t close = case_text.find('"', open + 1);
  return close == std::string_view::npos ? std::string_view()
                                         : case_text.substr(open + 1, close - open - 1);
}

Result<LiveRun> LiveRun::make(Properties properties) {
  Properties judged = properties;  // in which it says by what it judges
  ASSAY_TRY(Judging judging, judging_by({}, judged));
  return LiveRun(std::move(judging), std::move(properties));
}

void LiveRun::add(const FinishedCase& finished) {
  const auto outcome = static_cast<std::size_t>(finished.verdict.outcome);
  const bool failed = info(finished.verdict.outcome).failed;
  ++cases_;
  ++outcomes_[outcome];
  OfApi& api = apis_[std::string(api_of(finished.text))];
  ++api.outcomes[outcome];
  api.seconds += static_cast<double>(finished.took_us) / 1e6;
  if (const StageTimes times = stage_times(finished); times.cases > 0) {
    api.stages.add(times);
    sizes_[size_of_case(finished.text)].add(times);
  }
  ++dtypes_[std::string(first_dtype(finished.text))][outcome];
  last_ms_ = std::max(last_ms_, finished.finished_ms);
  Minute& minute = minutes_[finished.finished_ms / kMinuteMs];
  ++minute.cases;
  if (failed || (finished.verdict.flags != 0 && listed_passed_++ < kListedPassed)) {
    list_.add(finished);
  }
  if (!failed) return;
  ++minute.failed;
  findings_.add(finished, judging_.with_fault(finished));
}

void LiveRun::add(const InvalidLine& line) {
  ++outcomes_[static_cast<std::size_t>(Outcome::invalid)];
  list_.add(line);
}

// What the tables accommodate of this run's APIs: {"cases": N, "rows": [[API, "in words; …"], …]}.
nlohmann::json LiveRun::accommodated_json() const {
  std::uint64_t cases = 0;
  nlohmann::json rows = nlohmann::json::array();
  const auto kept = properties_.find(std::string(kAccommodations));
  const auto all = kept == properties_.end()
                       ? nlohmann::json()
                       : nlohmann::json::parse(kept->second, nullptr, /*allow_exceptions=*/false);
  for (const auto& [api, of_api] : apis_) {
    const auto found = all.is_object() ? all.find(api) : all.end();
    if (found == all.end() || !found->is_array()) continue;
    for (const std::uint64_t count : of_api.outcomes) cases += count;
    std::string words;
    for (const auto& each : *found) {
      if (each.is_string()) words += (words.empty() ? "" : "; ") + each.get<std::string>();
    }
    rows.push_back({api, words});
  }
  return {{"cases", cases}, {"rows", rows}};
}

nlohmann::json LiveRun::apis_json() const {
  std::vector<std::pair<std::uint64_t, nlohmann::json>> rows;
  rows.reserve(apis_.size());
  for (const auto& [name, api] : apis_) {
    rows.emplace_back(failures(api.outcomes),
                      nlohmann::json{{"api", name},
                                     {"outcomes", counts_json(api.outcomes)},
                                     {"failed", failures(api.outcomes)},
                                     {"seconds", api.seconds},
                                     {"timed", api.stages.cases},
                                     {"stage_ms", api.stages.json()}});
  }
  return worst(std::move(rows));
}

nlohmann::json LiveRun::dtypes_json() const {
  std::vector<std::pair<std::uint64_t, nlohmann::json>> rows;
  rows.reserve(dtypes_.size());
  for (const auto& [name, counts] : dtypes_) {
    rows.emplace_back(failures(counts), nlohmann::json{{"dtype", name.empty() ? "none" : name},
                                                       {"outcomes", counts_json(counts)},
                                                       {"failed", failures(counts)}});
  }
  return worst(std::move(rows));
}

nlohmann::json LiveRun::sizes_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    if (sizes_[i].cases == 0) continue;
    list.push_back(
        {{"size", kSizes[i]}, {"timed", sizes_[i].cases}, {"stage_ms", sizes_[i].json()}});
  }
  return list;
}

nlohmann::json LiveRun::found_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& each : findings_.findings()) {
    if (list.size() == kShown) break;
    list.push_back({{"digest", each.key.digest()},
                    {"api", each.key.api},
                    {"outcome", std::string(name(each.key.outcome))},
                    {"where", each.key.where},
                    {"how", each.key.how},
                    {"circumstances", circumstances(each)},
                    {"cases", each.cases},
                    {"id", format_case_id(each.id)},
                    {"text", shortened(each.text)},
                    {"message", shortened(each.verdict.message)},
                    {"first_ms", each.first_ms},
                    {"last_ms", each.last_ms}});
  }
  return list;
}

// [[minute, cases, failed], …]; a long run in steps of several minutes.
nlohmann::json LiveRun::history_json() const {
  if (minutes_.empty()) return nlohmann::json::array();
  const std::int64_t first = minutes_.begin()->first;
  const std::int64_t span = minutes_.rbegin()->first - first + 1;
  const std::int64_t step = 1 + span / static_cast<std::int64_t>(kShownMinutes);
  std::map<std::int64_t, Minute> steps;
  for (const auto& [minute, counts] : minutes_) {
    Minute& sum = steps[first + (minute - first) / step * step];
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
  for (const OutcomeInfo& each : kOutcomes) {
    meanings.push_back({std::string(each.name), each.failed, std::string(each.meaning)});
  }
  Properties facts = properties_;
  facts.erase(std::string(kAccommodations));
  return {{"read", cases_},
          {"properties", facts},
          {"accommodated", accommodated_json()},
          {"failed", failures(outcomes_)},
          {"outcomes", counts_json(outcomes_)},
          {"meanings", meanings},
          {"apis", apis_json()},
          {"dtypes", dtypes_json()},
          {"findings", found_json()},
          {"history", history_json()},
          {"stages", kStages},
          {"sizes", sizes_json()},
          {"listed", list_.cases()},
          {"of_part", CaseList::kOfPart},
          {"left_out", list_.left_out()},
          // With the text of a case instead of the sign.
          {"rerun", rerun_command("@", properties_)}};
}

RunTotals LiveRun::totals(std::string name) const {
  RunTotals totals;
  totals.name = std::move(name);
  totals.properties = properties_;
  totals.last_ms = last_ms_;
  for (const OutcomeInfo& each : kOutcomes) {
    const std::uint64_t count = outcomes_[static_cast<std::size_t>(each.outcome)];
    if (count > 0) totals.outcomes.emplace(each.name, count);
  }
  return totals;
}

Result<LiveRun> live_run_of(RunReader& run) {
  ASSAY_TRY(LiveRun::Properties properties, run.properties());
  ASSAY_TRY(LiveRun grown, LiveRun::make(std::move(properties)));
  ASSAY_CHECK(run.each_finished([&](const FinishedCase& each) -> Status {
    grown.add(each);
    return {};
  }));
  ASSAY_CHECK(run.each_invalid([&](const InvalidLine& line) -> Status {
    grown.add(line);
    return {};
  }));
  return grown;
}

}  // namespace assay
