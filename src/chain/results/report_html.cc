#include "chain/results/report_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "pages/page.h"

namespace assay::chain::results {
namespace {

using nlohmann::json;

constexpr int kPageVersion = 1;
constexpr std::streamoff kTail = 16'000;  // bytes of a log that a page shows
constexpr std::size_t kFiles = 200;       // of a stage

// The last lines of a log; "" if it cannot be read.
std::string tail_of(const std::string& path) {
  std::ifstream log(path, std::ios::binary | std::ios::ate);
  if (!log) return {};
  const std::streamoff size = log.tellg();
  const std::streamoff begin = std::max<std::streamoff>(0, size - kTail);
  std::string text(static_cast<std::size_t>(size - begin), '\0');
  log.seekg(begin);
  log.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, log.gcount())));
  const std::size_t line = text.find('\n');  // the first one may be cut
  return begin > 0 && line != std::string::npos ? text.substr(line + 1) : text;
}

// {"loss": [9.0, 5.0], …}
Result<json> readings_of(ChainStore& store, const StoredStage& stage) {
  ASSAY_TRY(const std::vector<StoredReading> readings, store.readings(stage.id));
  json all = json::object();
  for (const StoredReading& reading : readings) all[reading.name].push_back(reading.value);
  return all;
}

Result<json> stage_json(ChainStore& store, const StoredStage& stage) {
  ASSAY_TRY(json readings, readings_of(store, stage));
  ASSAY_TRY(const stage::AutoLog fields, store.autolog(stage.id));
  ASSAY_TRY(const std::vector<NodeRecord> nodes, store.nodes(stage.id));
  json shown{{"name", stage.name},
             {"kind", stage.kind},
             {"command", stage.command},
             {"state", stage.state},
             {"detail", stage.detail},
             {"log", stage.log},
             {"tail", tail_of(stage.log)},
             {"seconds", stage.seconds},
             {"rss_mb", stage.peak_rss_mb},
             {"gpu_mb", stage.gpu_memory_mb},
             {"gpu_percent", stage.gpu_percent},
             {"readings", std::move(readings)},
             {"autolog", fields},
             {"files", json::array()},
             {"nodes", json::array()}};
  for (const auto& [path, mark] : stage.made) {
    if (shown["files"].size() < kFiles) shown["files"].push_back({path, mark.size});
  }
  for (const NodeRecord& node : nodes) {
    shown["nodes"].push_back({node.host, node.gpu_model, node.framework, node.batch_size,
                              node.state, node.ips > 0 ? fmt::format("{:.4g}", node.ips) : ""});
  }
  return shown;
}

// Adds to the stages the readings and seconds of the last earlier run of the same chain that
// passed.
Status add_before(ChainStore& store, const std::vector<StoredRun>& runs, json& page) {
  const StoredRun& now = runs.back();
  const auto before =
      std::find_if(std::next(runs.rbegin()), runs.rend(), [&](const StoredRun& run) {
        return run.exit_code == 0 && run.file == now.file && run.mode == now.mode;
      });
  if (before == runs.rend()) return {};
  page["before"] = before->started;
  ASSAY_TRY(const std::vector<StoredStage> stages, store.stages(before->id));
  for (json& shown : page["stages"]) {
    for (const StoredStage& stage : stages) {
      if (stage.name != shown["name"].get_ref<const std::string&>()) continue;
      ASSAY_TRY(shown["before"], readings_of(store, stage));
      shown["seconds_before"] = stage.seconds;
    }
  }
  return {};
}

}  // namespace

Result<std::string> chain_report(ChainStore& store, double budget_seconds,
                                 const std::string& golden) {
  ASSAY_TRY(const std::vector<StoredRun> runs, store.runs());
  if (runs.empty()) return usage_error("no run in this store");
  const StoredRun& run = runs.back();
  ASSAY_TRY(const std::vector<StoredStage> stages, store.stages(run.id));
  json page{{"version", kPageVersion},  {"model", run.model},     {"mode", run.mode},
            {"file", run.file},         {"started", run.started}, {"exit_code", run.exit_code},
            {"budget", budget_seconds}, {"stages", json::array()}};
  for (const StoredStage& stage : stages) {
    ASSAY_TRY(json shown, stage_json(store, stage));
    page["stages"].push_back(std::move(shown));
  }
  ASSAY_CHECK(add_before(store, runs, page));
  if (!golden.empty()) page["golden"] = json::parse(golden, nullptr, false);
  const std::string text = dumped(page);
  return pages::whole_page({.kind = pages::Kind::chain,
                            .title = fmt::format("{} {}", run.model, run.mode),
                            .data = text,
                            .packed = false});
}

}  // namespace assay::chain::results
