#include "serve/past_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/values.h"
#include "report/run_report.h"

namespace assay {
namespace {

// "paddle 3.3.1 on cpu, torch 2.13.0 on cpu, assay 0.1.0".
std::string builds_of(const RunTotals& run) {
  std::string build;
  for (const char* role : {"test", "reference"}) {
    const std::string lane = value_at(run.properties, fmt::format("{}.lane", role));
    if (lane.empty()) continue;
    const std::string whole = build_of(run.properties, lane);
    const std::string version = whole.substr(0, whole.find(','));
    build += fmt::format("{}{}{} on {}", lane, version.empty() ? "" : " ", version,
                         value_at(run.properties, fmt::format("{}.device", role)));
    build += ", ";
  }
  return build + "assay " + value_at(run.properties, "version.assay");
}

// The runs that `own` is one of a series with, oldest first.
std::vector<const RunTotals*> series_of(const std::vector<RunTotals>& others,
                                        const RunTotals& own) {
  const auto same = [&](const RunTotals& other) {
    for (const char* key : {"mode", "test.lane", "reference.lane", "test.device"}) {
      if (value_at(other.properties, key) != value_at(own.properties, key)) return false;
    }
    return true;
  };
  std::vector<const RunTotals*> runs;
  for (const RunTotals& each : others) {
    if (same(each)) runs.push_back(&each);
  }
  runs.push_back(&own);
  // Ends are known to the minute. The stable sort puts `own` after runs that ended in its minute.
  const auto minute = [](const RunTotals* run) { return run->last_ms / kMinuteMs; };
  std::stable_sort(runs.begin(), runs.end(),
                   [&](const RunTotals* a, const RunTotals* b) { return minute(a) < minute(b); });
  return runs;
}

}  // namespace

nlohmann::json run_row(const RunTotals& run) {
  return {{"name", run.name},       {"build", builds_of(run)},
          {"last_ms", run.last_ms}, {"duration_ms", run.duration_ms},
          {"sampled", run.sampled}, {"outcomes", run.outcomes}};
}

void put_history(const std::vector<RunTotals>& others, const RunTotals& own, nlohmann::json& page) {
  const std::vector<const RunTotals*> runs = series_of(others, own);
  nlohmann::json& list = page["runs"] = nlohmann::json::array();
  for (const RunTotals* run : runs) list.push_back(run_row(*run));
  const auto self = std::find(runs.rbegin(), runs.rend(), &own);
  for (nlohmann::json& finding : page["findings"]) {
    const std::string digest = finding["digest"];
    const RunTotals* since = &own;
    for (auto at = std::next(self); at != runs.rend() && (*at)->faults.contains(digest); ++at) {
      since = *at;
    }
    finding["since"] = {{"name", since->name}, {"last_ms", since->last_ms}};
  }
}

}  // namespace assay
