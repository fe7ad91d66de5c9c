#include "engine/lane_servers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/text.h"
#include "device/compute_sanitizer.h"
#include "engine/lane_plan.h"
#include "slot/timing.h"
#include "wire/arena.h"
#include "wire/shared.h"

namespace assay {
namespace {

constexpr std::chrono::minutes kImportLimit{3};

// A worker maps an arena for each of its lanes: addresses, not memory.
Status check_address_space(std::size_t lanes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  const std::uint64_t wanted = lanes * wire::kArenaBytes;
  if (limit.rlim_cur >= wanted) return {};
  return usage_error(
      fmt::format("a worker needs {} GiB of addresses (not of memory), and `ulimit -v` allows {}; "
                  "start it after `ulimit -v unlimited`",
                  wanted >> 30U, limit.rlim_cur >> 30U));
}

Result<ForkServer> start_server(const RunConfig& config, const std::string& label,
                                const FrameworkConfig& framework, const LanePackage& package) {
  return ForkServer::start(framework, package,
                           config.folder / "lanes" / fmt::format("server-{}.log", label));
}

Result<std::size_t> server_of(const RunConfig& config, const PlannedLane& lane,
                              const LanePackage& package, Lanes& lanes) {
  for (std::size_t i = 0; i < lanes.servers.size(); ++i) {
    if (lanes.servers[i].config() == lane.framework) return i;
  }
  const std::string& label = lane.spec.label;
  ASSAY_TRY(ForkServer server, start_server(config, label, lane.framework, package));
  lanes.servers.push_back(std::move(server));
  lanes.labels.push_back(label);
  if (is_timed(config.settings) && mode_of(config).lanes.size() > 1) {
    FrameworkConfig framework = lane.framework;
    framework.keep = std::chrono::seconds(0);  // forks of a kept server lie alike in memory
    ASSAY_TRY(ForkServer second, start_server(config, label + "-second", framework, package));
    lanes.retry_servers.push_back(std::move(second));
  }
  return lanes.servers.size() - 1;
}

void set_addresses(const Lanes& lanes, std::size_t server, wire::LaneSpecT& spec) {
  const auto bytes = [](const std::string& address) {
    return std::vector<std::uint8_t>(address.begin(), address.end());
  };
  spec.address = bytes(lanes.servers[server].address());
  if (lanes.retry_servers.empty()) return;
  spec.retry_address = bytes(lanes.retry_servers[server].address());
}

std::optional<MpsService> start_mps(const RunConfig& config, const RunObserver& observer) {
  if (!config.mps) return std::nullopt;
  auto service = MpsService::start();
  if (service) return std::move(*service);
  if (observer.note) {
    observer.note(
        fmt::format("no MPS, so processes on a GPU take turns: {}", service.error().message));
  }
  return std::nullopt;
}

// compute-sanitizer watches the test lane only.
Status put_under_sanitizer(const RunConfig& config, PlannedLane& lane) {
  if (config.sanitizer.empty() || lane.spec.role != wire::Role::test) return {};
  ASSAY_TRY(const std::string program, find_compute_sanitizer());
  std::error_code error;
  const auto log = std::filesystem::absolute(config.folder, error) / "lanes/compute-sanitizer.log";
  lane.framework.keep = std::chrono::seconds(0);  // its log is of this run alone
  lane.framework.command = sanitizer_command(program, config.sanitizer, log);
  for (std::string& entry : sanitizer_environment(log)) {
    lane.framework.environment.push_back(std::move(entry));
  }
  return {};
}

// Measured: the supervisor has 21 open files and 2 for each worker, a fork server 13 and 2; more
// while processes start.
Status check_open_files(std::uint64_t workers) {
  constexpr std::uint64_t kAlways = 40;
  constexpr std::uint64_t kForWorker = 3;
  rlimit limit{};
  const std::uint64_t wanted = kAlways + kForWorker * workers;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return {};
  return usage_error(fmt::format(
      "a run with {} needs {} open files, and `ulimit -n` allows {}; raise that, or use "
      "fewer with --num_workers_per_gpu",
      count_of(workers, "worker"), wanted, limit.rlim_cur));
}

// The entry that names the executions with a setting of all lanes in this framework.
std::string executions_of(const std::vector<PlannedLane>& lanes, const FrameworkConfig& framework) {
  std::vector<std::string> parts;
  for (const PlannedLane& lane : lanes) {
    if (lane.framework != framework) continue;
    for (std::string& part : split_at(lane.spec.execution, '+')) {
      if (part.find('=') != std::string::npos) parts.push_back(std::move(part));
    }
  }
  return fmt::format("{}={}", wire::kExecutionsVariable, fmt::join(parts, "+"));
}

// What a machine without Paddle can run, as the end of the server's error; usually empty.
std::string_view instead_of_paddle(const Lanes& lanes, std::size_t server) {
  const bool only_test_lane =
      std::ranges::count(lanes.specs, "paddle", &wire::LaneSpecT::framework) == 1 &&
      lanes.specs.front().framework == "paddle" && lanes.server_of.front() == server;
  return only_test_lane ? "; --test-lane=torch tests PyTorch instead" : "";
}

// Tells the test lane whether the reference lane would get the same results from the same function.
void note_twin(const RunConfig& config, const std::vector<ServerInfo>& infos, Lanes& lanes) {
  if (lanes.specs.size() < 2 || !lanes.server_of[0]) return;
  const wire::LaneSpecT& other = lanes.specs[1];
  const std::string build =
      lanes.server_of[1] ? infos[*lanes.server_of[1]].build : build_of_goldens(*config.goldens);
  const std::string device =
      lanes.server_of[1] ? other.device : fact_of(*config.goldens, "reference.device");
  wire::LaneSpecT& test = lanes.specs[0];
  test.twin = infos[*lanes.server_of[0]].build == build && test.framework == other.framework &&
              kind_of(test.device) == kind_of(device) && test.execution == other.execution;
}

}  // namespace

std::string build_of_goldens(const GoldensConfig& goldens) {
  return fact_of(goldens, fact_of(goldens, kReferenceLane) + std::string(kBuildSuffix));
}

Result<Lanes> start_lanes(const RunConfig& config, const RunObserver& observer) {
  ASSAY_TRY(const LanePackage package, LanePackage::find());
  Lanes lanes;
  ASSAY_CHECK(check_address_space(plan_lanes(config).size()));
  ASSAY_CHECK(check_open_files(config.slots));
  lanes.mps = start_mps(config, observer);
  const std::vector<PlannedLane> planned = plan_lanes(config);
  for (PlannedLane lane : planned) {
    if (!lane.spec.goldens.empty()) {
      lanes.specs.push_back(std::move(lane.spec));
      lanes.server_of.emplace_back();
      continue;
    }
    lane.framework.of_run = {executions_of(planned, lane.framework)};
    if (lanes.mps) {
      lane.framework.of_run.push_back(lanes.mps->environment());
      lane.framework.of_run.push_back(fmt::format("{}=1", wire::kOwnMpsVariable));
    }
    if (config.spares > 0) {
      lane.framework.of_run.push_back(fmt::format("{}={}", wire::kSparesVariable, config.spares));
      lane.framework.of_run.push_back(
          fmt::format("{}={}", wire::kSparesAfterFaultVariable, config.spares_after_a_fault));
    }
    ASSAY_CHECK(put_under_sanitizer(config, lane));
    ASSAY_TRY(const std::size_t server, server_of(config, lane, package, lanes));
    set_addresses(lanes, server, lane.spec);
    lanes.specs.push_back(std::move(lane.spec));
    lanes.server_of.push_back(server);
  }
  return lanes;
}

Result<std::vector<ServerInfo>> wait_for_lanes(const RunConfig& config, Lanes& lanes,
                                               const RunObserver& observer) {
  std::vector<ServerInfo> infos;
  for (ForkServer& server : lanes.servers) {
    auto info = server.wait_ready(kImportLimit);
    if (!info) {
      const std::string_view instead = instead_of_paddle(lanes, infos.size());
      return fail(info.error().message.append(instead), info.error().kind);
    }
    infos.push_back(std::move(*info));
  }
  for (ForkServer& server : lanes.retry_servers) {
    ASSAY_CHECK(server.wait_ready(kImportLimit));
  }
  for (std::size_t i = 0; i < lanes.specs.size(); ++i) {
    if (!lanes.server_of[i]) continue;
    const ServerInfo& info = infos[*lanes.server_of[i]];
    ASSAY_CHECK(check_execution(info, lanes.specs[i]));
    ASSAY_CHECK(place_lane(info, lanes.specs[i]));
    lanes.specs[i].no_gradients = !info.gradients;
    if (!info.gradients && observer.note) {
      observer.note(fmt::format("{}: {} {} cannot differentiate; only results are compared",
                                lanes.specs[i].label, info.framework, info.version));
    }
    for (const auto& [execution, note] : info.notes) {
      const bool used = lanes.specs[i].execution.find(execution) != std::string::npos;
      if (used && observer.note) observer.note(fmt::format("{}: {}", lanes.specs[i].label, note));
    }
  }
  note_twin(config, infos, lanes);
  return infos;
}

}  // namespace assay
