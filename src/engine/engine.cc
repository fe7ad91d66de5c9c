#include "engine/engine.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "engine/plan.h"
#include "engine/recorder.h"
#include "engine/session.h"

namespace assay {
namespace {

constexpr std::chrono::minutes kImportLimit{3};

// Logs of a run that assay did not make, of engineV2 for one, would be replaced by our own.
Status refuse_foreign_logs(const std::filesystem::path& folder) {
  if (has_store(folder)) return {};
  std::error_code error;
  for (const OutcomeInfo& outcome : kOutcomes) {
    if (std::filesystem::exists(folder / outcome.log, error)) {
      return usage_error(fmt::format("{} holds logs of another tool ({}); choose another --log_dir",
                                     folder.string(), outcome.log));
    }
  }
  return {};
}

Status make_folder(const std::filesystem::path& folder) {
  ASSAY_CHECK(refuse_foreign_logs(folder));
  std::error_code error;
  std::filesystem::create_directories(folder / "lanes", error);
  if (error) {
    return usage_error(fmt::format("cannot write to {}: {}; choose another --log_dir",
                                   folder.string(), error.message()));
  }
  return {};
}

// The servers of the test lane and, unless it is the same framework's or there is none, of the
// reference lane. They import in the background.
Result<std::vector<ForkServer>> start_servers(const RunConfig& config) {
  ASSAY_TRY(const LanePackage package, LanePackage::find());
  std::vector<ForkServer> servers;
  const auto start = [&](const FrameworkConfig& framework) -> Status {
    const auto log = config.folder / "lanes" / fmt::format("server-{}.log", framework.name);
    ASSAY_TRY(ForkServer server, ForkServer::start(framework, package, log));
    servers.push_back(std::move(server));
    return {};
  };
  ASSAY_CHECK(start(config.test));
  if (config.mode == Mode::accuracy) ASSAY_CHECK(start(config.reference));
  return servers;
}

Result<Policies> load_policies(const RunConfig& config) {
  ASSAY_TRY(const LanePackage package, LanePackage::find());
  const std::filesystem::path file = package.python_path / "assay" / "policies.toml";
  ASSAY_TRY(const std::string text, read_file(file));
  return Policies::parse(text, file.string(), {config.atol, config.rtol, true, {}});
}

using Properties = std::map<std::string, std::string>;

// A run is resumed only as what it was begun as: verdicts of two kinds do not mix. Reads only.
Status check_properties(const RunConfig& config, const Properties& wanted, Store& store) {
  ASSAY_TRY(const Properties found, store.properties());
  for (const auto& [key, value] : wanted) {
    const auto stored = found.find(key);
    if (stored != found.end() && stored->second != value) {
      return usage_error(
          fmt::format("{} was begun with {} = {}, this run has {}; resume it with "
                      "the same, or choose another --log_dir",
                      config.folder.string(), key, stored->second, value));
    }
  }
  return {};
}

// Now it is known that the run can start: the plan, and what a retest makes undone, become durable
// together with what the run was begun with.
Status begin_run(const RunConfig& config, const Properties& properties, Store& store) {
  for (const auto& [key, value] : properties) ASSAY_CHECK(store.set_property(key, value));
  for (const auto& [key, value] : config.rerun_flags) {
    ASSAY_CHECK(store.set_property(key, value));
  }
  return store.commit();
}

}  // namespace

Result<RunSummary> run_engine(const RunConfig& config, const RunObserver& observer) {
  ASSAY_CHECK(make_folder(config.folder));
  ASSAY_TRY(const std::unique_ptr<Store> opened, open_store(config.folder, StoreMode::create));
  Store& store = *opened;
  Properties properties = verdict_settings(config);
  ASSAY_CHECK(check_properties(config, properties, store));
  ASSAY_TRY(Policies policies, load_policies(config));
  ASSAY_TRY(std::vector<ForkServer> servers, start_servers(config));
  ASSAY_TRY(Plan plan, make_plan(config, store));  // while the frameworks are being imported

  RunSummary summary;
  for (ForkServer& server : servers) {
    ASSAY_TRY(ServerInfo info, server.wait_ready(kImportLimit));
    properties[info.framework] = info.version;
    summary.frameworks.push_back(std::move(info));
  }
  ASSAY_CHECK(check_properties(config, properties, store));
  ASSAY_CHECK(begin_run(config, properties, store));
  if (observer.planned) observer.planned(plan.totals);
  for (const InvalidLine& line : plan.first_invalid) {
    if (observer.note) observer.note(fmt::format("invalid, {}: {}", line.where, line.message));
  }
  if (plan.totals.planned > 0) {
    Recorder recorder(config, std::move(policies), store, plan.totals, observer);
    Session session(config, plan, recorder, store, observer, std::move(servers));
    ASSAY_TRY(summary.ending, session.run());
  }
  summary.totals = plan.totals;
  return summary;
}

}  // namespace assay
