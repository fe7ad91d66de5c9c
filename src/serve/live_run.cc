#include "serve/live_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "case/canonical.h"
#include "wire/frame.h"
#include "wire/messages_generated.h"

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
template <typename Row>
void keep_worst(std::vector<std::pair<std::uint64_t, Row>>& rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (rows.size() > LiveRun::kShown) rows.resize(LiveRun::kShown);
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

void LiveRun::add(const FinishedCase& finished) {
  const auto outcome = static_cast<std::size_t>(finished.verdict.outcome);
  const bool failed = info(finished.verdict.outcome).failed;
  ++cases_;
  ++outcomes_[outcome];
  OfApi& api = apis_[std::string(api_of(finished.text))];
  ++api.outcomes[outcome];
  api.seconds += static_cast<double>(finished.took_us) / 1e6;
  add_stages(finished, api);
  ++dtypes_[std::string(first_dtype(finished.text))][outcome];
  Minute& minute = minutes_[finished.finished_ms / kMinuteMs];
  ++minute.cases;
  if (!failed) return;
  ++minute.failed;
  Seen& seen = findings_[key_of(finished.text, judging_.with_fault(finished))];
  if (seen.cases++ == 0) {
    seen.id = finished.id;
    seen.text = shortened(finished.text);
    seen.message = shortened(finished.verdict.message);
    seen.first_ms = finished.finished_ms;
  }
  seen.first_ms = std::min(seen.first_ms, finished.finished_ms);
  seen.last_ms = std::max(seen.last_ms, finished.finished_ms);
}

void LiveRun::add_stages(const FinishedCase& finished, OfApi& api) const {
  if (finished.record.empty()) return;
  const auto record = wire::open<wire::Record>(finished.record);
  if (!record || (*record)->trials() == nullptr) return;
  ++api.timed;
  for (const wire::Trial* trial : *(*record)->trials()) {
    if (trial->lanes() == nullptr) continue;
    for (const wire::LaneRecord* lane : *trial->lanes()) {
      if (lane->nanoseconds() == nullptr) continue;
      const std::size_t count = std::min<std::size_t>(kStages.size(), lane->nanoseconds()->size());
      for (std::size_t i = 0; i < count; ++i) {
        api.stages[i] +=
            static_cast<double>(lane->nanoseconds()->Get(static_cast<flatbuffers::uoffset_t>(i))) /
            1e9;
      }
    }
  }
}

nlohmann::json LiveRun::apis_json() const {
  std::vector<std::pair<std::uint64_t, nlohmann::json>> rows;
  rows.reserve(apis_.size());
  for (const auto& [name, api] : apis_) {
    nlohmann::json stages = nlohmann::json::array();
    for (const double seconds : api.stages) {
      stages.push_back(api.timed > 0 ? 1000 * seconds / static_cast<double>(api.timed) : 0.0);
    }
    rows.emplace_back(failures(api.outcomes),
                      nlohmann::json{{"api", name},
                                     {"outcomes", counts_json(api.outcomes)},
                                     {"failed", failures(api.outcomes)},
                                     {"seconds", api.seconds},
                                     {"stage_ms", stages}});
  }
  keep_worst(rows);
  nlohmann::json list = nlohmann::json::array();
  for (auto& [rank, row] : rows) list.push_back(std::move(row));
  return list;
}

nlohmann::json LiveRun::findings_json() const {
  std::vector<std::pair<std::uint64_t, nlohmann::json>> rows;
  rows.reserve(findings_.size());
  for (const auto& [key, seen] : findings_) {
    rows.emplace_back(seen.cases, nlohmann::json{{"digest", key.digest()},
                                                 {"api", key.api},
                                                 {"outcome", std::string(name(key.outcome))},
                                                 {"where", key.where},
                                                 {"how", key.how},
                                                 {"cases", seen.cases},
                                                 {"id", format_case_id(seen.id)},
                                                 {"text", seen.text},
                                                 {"message", seen.message},
                                                 {"first_ms", seen.first_ms},
                                                 {"last_ms", seen.last_ms}});
  }
  keep_worst(rows);
  nlohmann::json list = nlohmann::json::array();
  for (auto& [rank, row] : rows) list.push_back(std::move(row));
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
  std::vector<std::pair<std::uint64_t, nlohmann::json>> dtypes;
  dtypes.reserve(dtypes_.size());
  for (const auto& [name, counts] : dtypes_) {
    dtypes.emplace_back(failures(counts), nlohmann::json{{"dtype", name.empty() ? "none" : name},
                                                         {"outcomes", counts_json(counts)},
                                                         {"failed", failures(counts)}});
  }
  keep_worst(dtypes);
  nlohmann::json by_dtype = nlohmann::json::array();
  for (auto& [rank, row] : dtypes) by_dtype.push_back(std::move(row));
  return {{"read", cases_},
          {"failed", failures(outcomes_)},
          {"outcomes", counts_json(outcomes_)},
          {"apis", apis_json()},
          {"dtypes", by_dtype},
          {"findings", findings_json()},
          {"history", history_json()},
          {"stages", kStages}};
}

}  // namespace assay
