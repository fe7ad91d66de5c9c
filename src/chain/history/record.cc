#include "chain/history/record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>
#include <utility>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/json.h"
#include "chain/results/compare.h"
#include "chain/stage/train_log.h"

namespace assay::chain::history {
namespace {

namespace fs = std::filesystem;
using Readings = std::vector<results::StoredReading>;

std::vector<double> series_named(const Readings& readings, std::string_view name) {
  std::vector<double> values;
  for (const results::StoredReading& reading : readings) {
    if (reading.name == name) values.push_back(reading.value);
  }
  return values;
}

// The mean without the first value, which includes one-time costs.
std::vector<double> steady_mean(std::vector<double> values) {
  if (values.size() > 1) values.erase(values.begin());
  if (values.empty()) return {};
  return {std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size())};
}

class Metrics {
 public:
  Metrics(Run& run, const std::string& stage) : run_(run), stage_(stage) {}

  void add(Kind kind, std::string_view what, std::vector<double> values) {
    if (values.empty()) return;
    run_.metrics[fmt::format("{}: {}", stage_, what)] = {kind, std::move(values)};
  }
  void add_positive(Kind kind, std::string_view what, double value) {
    if (value > 0) add(kind, what, {value});
  }

 private:
  Run& run_;
  const std::string& stage_;
};

Status measure_training(results::ChainStore& store, const results::StoredStage& stage,
                        Metrics& metrics) {
  ASSAY_TRY(const Readings readings, store.readings(stage.id));
  std::string_view last;
  for (const results::StoredReading& reading : readings) {
    if (reading.name == last || !stage::is_loss(reading.name)) continue;
    last = reading.name;
    metrics.add(Kind::loss, reading.name, series_named(readings, reading.name));
  }
  std::vector<double> speed = steady_mean(series_named(readings, "ips"));
  if (speed.empty()) {
    metrics.add(Kind::time, "batch_cost", steady_mean(series_named(readings, "batch_cost")));
  } else {
    metrics.add(Kind::speed, "ips", std::move(speed));
  }
  return {};
}

Status measure_inference(results::ChainStore& store, const results::StoredStage& stage,
                         Metrics& metrics) {
  ASSAY_TRY(const stage::AutoLog fields, store.autolog(stage.id));
  if (const auto found = fields.find("inference_time(ms)"); found != fields.end()) {
    const std::string& text = found->second;
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    metrics.add_positive(Kind::time, "ms an inference", value);
  }
  // A log that is gone has no predictions, which the judgement reports as missing.
  const Result<std::string> log = read_file(stage.log);
  if (!log) return {};
  std::vector<double> values;
  for (const auto& [image, numbers] : results::predictions_in(*log)) {
    values.insert(values.end(), numbers.begin(), numbers.end());
  }
  metrics.add(Kind::prediction, "predictions", std::move(values));
  return {};
}

Result<Run> run_of_stages(results::ChainStore& store,
                          const std::vector<results::StoredStage>& stages) {
  Run run;
  for (const results::StoredStage& stage : stages) {
    if (stage.state != "passed") continue;
    Metrics metrics(run, stage.name);
    ASSAY_CHECK(measure_training(store, stage, metrics));
    if (stage.kind == "infer") ASSAY_CHECK(measure_inference(store, stage, metrics));
    metrics.add_positive(Kind::memory, "MB", stage.peak_rss_mb);
    metrics.add_positive(Kind::memory, "MB of GPU memory", stage.gpu_memory_mb);
  }
  for (const auto& [name, metric] : run.metrics) {
    const auto bad =
        std::ranges::find_if_not(metric.values, [](double value) { return std::isfinite(value); });
    if (bad == metric.values.end()) continue;
    return usage_error(fmt::format("{}: value {} is {}: such a run is not recorded", name,
                                   bad - metric.values.begin() + 1, *bad));
  }
  return run;
}

// The device and framework of the first machine of the first training that has any.
Result<results::NodeRecord> machine_of(results::ChainStore& store,
                                       const std::vector<results::StoredStage>& stages) {
  for (const results::StoredStage& stage : stages) {
    ASSAY_TRY(const std::vector<results::NodeRecord> nodes, store.nodes(stage.id));
    if (!nodes.empty()) return nodes.front();
  }
  results::NodeRecord record;
  record.gpu_model = "CPU";
  return record;
}

// Whether the new run can follow the earlier ones.
Status check_order(const Golden& golden, const Run& run, const std::string& path) {
  if (run.purpose == Purpose::nightly) return {};
  const auto nightly =
      std::ranges::find(golden.runs.rbegin(), golden.runs.rend(), Purpose::nightly, &Run::purpose);
  if (nightly == golden.runs.rend()) {
    return usage_error(fmt::format("{} has no nightly run yet: record one without --as", path));
  }
  if (run.purpose == Purpose::rerun && run.build != nightly->build) {
    return usage_error(
        fmt::format("a rerun has the build of the last night, {}: this is {}, which --as nightly "
                    "or --as baseline records",
                    nightly->build, run.build));
  }
  if (run.purpose == Purpose::baseline && run.build == nightly->build) {
    return usage_error(fmt::format(
        "a baseline run has an earlier build: {} is that of the last night", run.build));
  }
  return {};
}

}  // namespace

Result<Golden> measured(results::ChainStore& store, const RecordOptions& options) {
  ASSAY_TRY(const std::vector<results::StoredRun> runs, store.runs());
  if (runs.empty()) return usage_error("no run in this store");
  const results::StoredRun& latest = runs.back();
  if (latest.exit_code != 0) {
    return usage_error(fmt::format("the last run of {} {} did not pass: only good runs are golden",
                                   latest.model, latest.mode));
  }
  ASSAY_TRY(const std::vector<results::StoredStage> stages, store.stages(latest.id));
  ASSAY_TRY(const results::NodeRecord machine, machine_of(store, stages));
  ASSAY_TRY(Run run, run_of_stages(store, stages));
  run.time = latest.started;
  run.build = options.build.empty() ? machine.framework : options.build;
  run.purpose = options.purpose;
  run.accept = options.accept;
  if (run.build.empty()) {
    return usage_error("no framework is known beside the interpreter: name the build with --build");
  }
  if (run.metrics.empty()) return usage_error("the last run measured nothing");
  return Golden{latest.model, latest.mode, machine.gpu_model, {std::move(run)}};
}

Result<Golden> add_to(const fs::path& folder, Golden run) {
  ASSAY_CHECK(make_folder(folder));
  std::error_code error;
  ASSAY_TRY(const Fd lock, open_output((folder / ".assay-lock").string(), O_RDWR));
  // Who may read the file may lock it, too, and keep it.
  for (int tries = 0; ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (tries == 100) return fail("another process holds the lock of " + folder.string());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  const fs::path path = folder / file_name_of(run);
  Golden golden{run.model, run.mode, run.device, {}};
  if (fs::exists(path, error)) {
    ASSAY_TRY(golden, load_golden(path));
    if (golden.model != run.model || golden.mode != run.mode || golden.device != run.device) {
      return usage_error(fmt::format("{} is of {} {} on {}: give --goldens another folder",
                                     path.string(), golden.model, golden.mode, golden.device));
    }
  }
  Run& added = run.runs.front();
  ASSAY_CHECK(check_order(golden, added, path.string()));
  const bool again =
      std::ranges::any_of(golden.runs, [&](const Run& other) { return other.time == added.time; });
  if (again) {
    return usage_error(fmt::format("{} has the run of {} already", path.string(), added.time));
  }
  golden.runs.push_back(std::move(added));
  ASSAY_CHECK(write_file(path, write_golden(golden)));
  return golden;
}

Result<Golden> load_golden(const fs::path& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return usage_error(text.error().message);
  return read_golden(*text, path.string());
}

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
