#include "chain/history/golden_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "chain/history/record.h"

namespace assay::chain::history {
namespace {

// The values of the night before the last one.
const Metric* past_values(const Golden& golden, const std::string& metric) {
  int nights = 0;
  for (auto run = golden.runs.rbegin(); run != golden.runs.rend(); ++run) {
    if (run->purpose != Purpose::nightly || ++nights < 2) continue;
    const auto found = run->metrics.find(metric);
    if (found != run->metrics.end()) return &found->second;
  }
  return nullptr;
}

}  // namespace

nlohmann::json json_of(const MetricJudgement& one, const Golden& golden) {
  const Judgement& judgement = one.judgement;
  nlohmann::json object{{"metric", one.metric},
                        {"state", one.missing ? "missing" : name(judgement.state)},
                        {"value", judgement.value},
                        {"golden", judgement.golden},
                        {"tolerance", judgement.tolerance},
                        {"nights", judgement.learnt},
                        {"baseline_build", judgement.baseline_build}};
  if (judgement.since) object["since"] = golden.runs[*judgement.since].time;
  if (judgement.wanted > 0) {
    object["wanted"] = judgement.wanted;
    object["next"] = judgement.next == Purpose::rerun ? "rerun" : "baseline";
  }
  return object;
}

Result<std::string> beside_golden(results::ChainStore& store, const std::filesystem::path& folder) {
  const Result<Golden> run = measured(store, {.build = "not recorded"});
  if (!run) return std::string();
  const std::filesystem::path path = folder / file_name_of(*run);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::string();
  ASSAY_TRY(Golden golden, load_golden(path));
  const Run& latest = run->runs.front();
  const auto recorded = std::ranges::find(golden.runs, latest.time, &Run::time);
  if (recorded == golden.runs.end()) golden.runs.push_back(latest);
  nlohmann::json metrics = nlohmann::json::array();
  for (const MetricJudgement& one : judge_golden(golden)) {
    metrics.push_back(json_of(one, golden));
    metrics.back()["advice"] =
        one.missing ? "the night before had it" : advice_on(one.judgement, golden);
    if (const Metric* past = past_values(golden, one.metric))
      metrics.back()["values"] = past->values;
  }
  const nlohmann::json object{
      {"file", path.string()}, {"runs", golden.runs.size()}, {"metrics", std::move(metrics)}};
  return dumped(object);
}

}  // namespace assay::chain::history
