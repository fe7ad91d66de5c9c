#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>

#include "engine/plan.h"
#include "engine/recorder.h"
#include "engine/session.h"

namespace assay {
namespace {

constexpr std::chrono::minutes kImportLimit{3};
constexpr std::size_t kEveryCase = std::numeric_limits<std::size_t>::max();

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

// The lanes of each slot and the servers that fork them; a framework that two lanes share has one.
struct Lanes {
  std::vector<ForkServer> servers;
  std::vector<std::string> labels;  // of the servers
  std::vector<wire::LaneSpecT> specs;
};

// In a run of a framework against another build of itself, the second is told apart by its role.
std::string label_of(const RunConfig& config, const ModeLane& lane) {
  const std::string& name = lane_config(config, lane).framework.name;
  const bool same = lane.role != wire::Role::test && name == config.test.framework.name;
  return same ? name + "-reference" : name;
}

Result<std::size_t> server_of(const RunConfig& config, const ModeLane& lane,
                              const LanePackage& package, Lanes& lanes) {
  const FrameworkConfig& wanted = lane_config(config, lane).framework;
  for (std::size_t i = 0; i < lanes.servers.size(); ++i) {
    if (lanes.servers[i].config() == wanted) return i;
  }
  lanes.labels.push_back(label_of(config, lane));
  const auto log = config.folder / "lanes" / fmt::format("server-{}.log", lanes.labels.back());
  ASSAY_TRY(ForkServer server, ForkServer::start(wanted, package, log));
  lanes.servers.push_back(std::move(server));
  return lanes.servers.size() - 1;
}

// The servers import in the background.
Result<Lanes> start_lanes(const RunConfig& config) {
  ASSAY_TRY(const LanePackage package, LanePackage::find());
  Lanes lanes;
  const std::span<const ModeLane> wanted = mode_of(config).lanes;
  const bool known_only = std::any_of(
      wanted.begin(), wanted.end(), [](const ModeLane& lane) { return lane.reference_functions; });
  for (const ModeLane& lane : wanted) {
    ASSAY_TRY(const std::size_t server, server_of(config, lane, package, lanes));
    const std::string& address = lanes.servers[server].address();
    wire::LaneSpecT spec;
    spec.role = lane.role;
    spec.label = label_of(config, lane);
    spec.framework = lanes.servers[server].config().name;
    spec.address.assign(address.begin(), address.end());
    spec.device = lane_config(config, lane).device;
    spec.reference_functions = lane.reference_functions;
    spec.execution = lane.execution;
    spec.known_only = known_only;
    lanes.specs.push_back(std::move(spec));
  }
  return lanes;
}

Result<Policies> load_policies(const RunConfig& config) {
  ASSAY_TRY(const LanePackage package, LanePackage::find());
  const std::filesystem::path file = package.python_path / "assay" / "policies.toml";
  ASSAY_TRY(const std::string text, read_file(file));
  return Policies::parse(text, file.string(),
                         {config.settings.atol, config.settings.rtol, true, {}});
}

using Properties = std::map<std::string, std::string>;

// A run is resumed only as what it was begun as: ids, inputs and verdicts of two kinds do not mix.
// Reads only.
Status check_properties(const RunConfig& config, const Properties& wanted, Store& store) {
  ASSAY_TRY(const Properties found, store.properties());
  if (found.empty()) return {};  // a new run
  for (const auto& [key, value] : wanted) {
    const auto stored = found.find(key);
    if (stored == found.end() || stored->second != value) {
      return usage_error(fmt::format(
          "{} was begun with {} = {}, this run has {}; resume it with "
          "the same, or choose another --log_dir",
          config.folder.string(), key,
          stored == found.end() ? "(an assay that did not keep it)" : stored->second, value));
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
  ASSAY_TRY(Policies policies, load_policies(config));
  properties["version.policies"] = policies.version();
  ASSAY_CHECK(check_properties(config, properties, store));
  ASSAY_TRY(Lanes lanes, start_lanes(config));
  ASSAY_TRY(Plan plan, make_plan(config, store));  // while the frameworks are being imported

  RunSummary summary;
  for (std::size_t i = 0; i < lanes.servers.size(); ++i) {
    ASSAY_TRY(ServerInfo info, lanes.servers[i].wait_ready(kImportLimit));
    properties[lanes.labels[i]] = info.version;
    summary.frameworks.push_back(std::move(info));
  }
  ASSAY_CHECK(check_properties(config, properties, store));
  ASSAY_CHECK(begin_run(config, properties, store));
  ASSAY_TRY([[maybe_unused]] const Supply supply, claim_cases(config, kEveryCase, store, plan));
  if (observer.planned) observer.planned(plan.totals);
  for (const InvalidLine& line : plan.first_invalid) {
    if (observer.note) observer.note(fmt::format("invalid, {}: {}", line.where, line.message));
  }
  if (!plan.queue.empty()) {
    Recorder recorder(config, std::move(policies), store, plan.totals, observer);
    Session session(config, plan, recorder, store, observer, std::move(lanes.servers),
                    std::move(lanes.specs));
    ASSAY_TRY(summary.ending, session.run());
  }
  summary.totals = plan.totals;
  return summary;
}

}  // namespace assay
