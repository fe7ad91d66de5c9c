#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <thread>

#include "base/text.h"
#include "cli/api_parts.h"
#include "device/gpu_choice.h"
#include "device/plugin.h"
#include "engine/lane_plan.h"
#include "nvml/nvml.h"
#include "verdict/mode.h"

namespace assay {
namespace {

// Memory of a process on a GPU without any tensor: its context and the framework's libraries.
constexpr double kContextBytes = 0.6 * kGiB;
// Freed memory that PyTorch keeps for a lane's next case (KEPT_BYTES of torch_framework.py), plus
// the part of it that a slot may keep open (kKeepOpenBytesInAll).
constexpr double kKeptBytes = 0.75 * kGiB;
// The part of kKeptBytes that an idle lane keeps on average.
constexpr double kIdleBytes = 0.25 * kGiB;
// The least memory that a worker has for its cases.
constexpr double kRoomBytes = kGiB;
// The share of a GPU's free memory that a run plans with. The rest is for temporary allocations.
constexpr double kShare = 0.9;
// The share for a case that runs with nothing beside it.
constexpr double kShareAlone = 0.97;
// Spare lanes of a fork server outside MPS. A fault needs two: one finds the case, one continues.
// MPS has one more. Each spare blocks the other lanes for 0.4 s, so a run without faults has no
// more. Faults come in bursts: after the first one, kMostSpares are kept.
constexpr int kSpares = 2;
constexpr int kMostSpares = 12;
// The largest share of the cases' memory that spare lanes may take.
constexpr double kShareOfSpares = 0.25;

std::size_t lanes_on_gpus(const RunConfig& config) {
  return static_cast<std::size_t>(std::ranges::count_if(
      plan_lanes(config), [](const auto& lane) { return is_gpu(lane.spec.device); }));
}

// The GPUs that lanes name ("gpu:0").
std::set<int> named_gpus(const RunConfig& config) {
  std::set<int> named;
  for (const PlannedLane& lane : plan_lanes(config)) {
    if (const auto number = gpu_number(lane.spec.device)) named.insert(*number);
  }
  return named;
}

// Keeps the GPUs that lanes name. Other lanes use these, too.
Status keep_named(const std::set<int>& named, std::vector<ChosenGpu>& gpus) {
  if (named.empty()) return {};
  std::erase_if(gpus, [&](const ChosenGpu& gpu) { return !named.contains(gpu.ordinal); });
  if (gpus.size() == named.size()) return {};
  return usage_error(fmt::format(
      "a lane runs on gpu:{}, which is not here or not among --gpu_ids: numbers are those of CUDA, "
      "0 to the number of visible GPUs",
      fmt::join(named, " or gpu:")));
}

// Memory of an idle worker. Its slot has a context, too, in which it compares large results.
double held_by_worker(double lanes) { return (lanes + 1) * kContextBytes + lanes * kKeptBytes; }

std::uint64_t least_free(const std::vector<ChosenGpu>& gpus) {
  const auto least = std::min_element(gpus.begin(), gpus.end(), [](const auto& a, const auto& b) {
    return a.info.free_bytes < b.info.free_bytes;
  });
  return least->info.free_bytes;
}

std::uint64_t least_memory(const std::vector<ChosenGpu>& gpus) {
  const auto least = std::min_element(gpus.begin(), gpus.end(), [](const auto& a, const auto& b) {
    return a.info.total_bytes < b.info.total_bytes;
  });
  return least->info.total_bytes;
}

// The number that was asked for, or a useful number, limited by the free memory.
Result<std::uint32_t> workers_per_gpu(int asked, double required_gib, const RunConfig& config,
                                      const std::vector<ChosenGpu>& gpus,
                                      std::vector<std::string>& notes) {
  const auto lanes = static_cast<double>(lanes_on_gpus(config));
  // Small cases are bound by the host: each lane needs a core. If one lane runs on the CPU, the
  // lane on the GPU waits for it, and slots, which copy results to the GPU, need an eighth
  // (measured).
  const double cores = std::max(1U, std::thread::hardware_concurrency());
  const auto all_lanes = static_cast<double>(mode_of(config).lanes.size());
  const double cores_of_worker = lanes < all_lanes ? (all_lanes - lanes) * 8 / 7 : all_lanes;
  const double wanted =
      asked > 0 ? asked : std::max(1.0, cores / cores_of_worker / static_cast<double>(gpus.size()));
  const double each = std::max(required_gib * kGiB, held_by_worker(lanes) + kRoomBytes);
  const double room = static_cast<double>(least_free(gpus)) * kShare / each;
  if (room < 1) {
    return usage_error(fmt::format(
        "GPU {} has {:.1f} GiB free, and a worker needs {:.1f} GiB: free some memory, or choose "
        "other GPUs with --gpu_ids",
        gpus.front().info.number, static_cast<double>(least_free(gpus)) / kGiB, each / kGiB));
  }
  if (room < wanted && asked > 0) {
    notes.push_back(fmt::format("{} of {} workers on each GPU: more do not fit into {:.1f} GiB",
                                static_cast<int>(room), static_cast<int>(wanted),
                                static_cast<double>(least_free(gpus)) / kGiB));
  }
  return static_cast<std::uint32_t>(std::min(wanted, room));
}

std::string names_of(const std::vector<ChosenGpu>& gpus) {
  std::string names;
  for (const ChosenGpu& gpu : gpus) {
    names +=
        fmt::format("{}GPU {} ({}, {:.0f} of {:.0f} GiB free)", names.empty() ? "" : ", ",
                    gpu.info.number, gpu.info.name, static_cast<double>(gpu.info.free_bytes) / kGiB,
                    static_cast<double>(gpu.info.total_bytes) / kGiB);
  }
  return names;
}

// Sets the device of lanes that have none yet.
void place_lanes(RunConfig& config, std::string_view test, std::string_view reference) {
  if (config.test.device.empty()) config.test.device = test;
  if (config.reference.device.empty()) config.reference.device = reference;
}

// A plug-in that cannot be loaded is a usage error: the run works without GPUs.
Result<const AssayDevicePlugin*> plugin_for_gpus() {
  auto plugin = load_device_plugin(device_plugin_file());
  if (!plugin) return usage_error(plugin.error().message);
  return *plugin;
}

std::set<std::string> gpus_of_first_slot(const RunConfig& config) {
  std::set<std::string> gpus;
  for (const PlannedLane& lane : plan_lanes(config)) {
    const std::string device = device_in_slot(config, lane.spec.device, 0);
    if (gpu_number(device)) gpus.insert(device);
  }
  return gpus;
}

}  // namespace

Status check_two_gpus(const RunConfig& config) {
  const ModeInfo& mode = mode_of(config);
  const bool apart = std::any_of(mode.lanes.begin(), mode.lanes.end(),
                                 [](const ModeLane& lane) { return lane.device == kNextDevice; });
  if (!apart) return {};
  const std::size_t gpus = gpus_of_first_slot(config).size();
  if (gpus >= mode.lanes.size()) return {};
  const bool on_cpu = config.test.device == "cpu" && !config.gpus.empty();
  constexpr std::string_view kSuffix = "_dual_gpu";
  return usage_error(fmt::format(
      "--{} needs two GPUs, one for each lane, and {}: name two with --gpu_ids or --num_gpus=2, or "
      "use --{}, which needs one",
      mode.name,
      on_cpu      ? "the test lane runs on the CPU"
      : gpus == 0 ? "this run has none"
                  : "this run has 1",
      mode.name.substr(0, mode.name.size() - kSuffix.size())));
}

Result<bool> choose_gpu_seats(const ApiOptions& options, int asked_workers, RunConfig& config,
                              std::vector<std::string>& notes) {
  ASSAY_TRY(const std::vector<int> ids, parse_gpu_ids(options.gpu_ids));
  const std::set<int> named = named_gpus(config);
  const bool asked = options.num_gpus > 0 || !ids.empty() || !named.empty();
  if (options.num_gpus == 0 && !named.empty()) {
    return usage_error(
        fmt::format("--num_gpus=0 uses no GPU, and a lane names gpu:{}: leave one of them out",
                    *named.begin()));
  }
  if (options.num_gpus == 0 && !ids.empty()) {
    return usage_error("--num_gpus=0 uses no GPU, and --gpu_ids names some: leave one of them out");
  }
  const std::vector<GpuInfo> present = nvml_gpus();
  if (options.num_gpus == 0 || (present.empty() && !asked)) {
    place_lanes(config, "cpu", "cpu");
    return false;
  }
  place_lanes(config, options.test_cpu ? "cpu" : kAnyGpu, kAnyGpu);
  if (lanes_on_gpus(config) == 0) return false;
  const GpuDriver driver = nvml_driver();
  ASSAY_CHECK(check_driver(driver, 0, ""));
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  ASSAY_TRY(std::vector<ChosenGpu> gpus,
            choose_gpus(present, {named.empty() ? options.num_gpus : -1, options.gpu_ids},
                        visible != nullptr ? std::optional<std::string>(visible) : std::nullopt));
  ASSAY_CHECK(keep_named(named, gpus));
  ASSAY_TRY(const AssayDevicePlugin* plugin, plugin_for_gpus());
  ASSAY_CHECK(check_driver(driver, plugin->needs_driver, plugin->name));
  ASSAY_TRY(const std::uint32_t workers,
            workers_per_gpu(asked_workers, options.required_memory, config, gpus, notes));
  for (const ChosenGpu& gpu : gpus) config.gpus.push_back(gpu.ordinal);
  config.slots = workers * static_cast<std::uint32_t>(gpus.size());
  // This variable means that the user runs an MPS already.
  config.mps = options.mps && workers * lanes_on_gpus(config) > 1 &&
               std::getenv("CUDA_MPS_PIPE_DIRECTORY") == nullptr;
  config.gpu_bytes = least_memory(gpus);
  const auto lanes = static_cast<double>(lanes_on_gpus(config));
  double room = static_cast<double>(least_free(gpus)) * kShare - workers * held_by_worker(lanes);
  const double each = lanes * kContextBytes;
  const int spares = std::min(kMostSpares, static_cast<int>(room * kShareOfSpares / each) - 1);
  // In modes that time, no other process may create a context.
  if (spares >= kSpares && mode_of(config).agreement != Agreement::speed) {
    config.spares = kSpares;
    config.spares_after_a_fault = spares;
    room -= (spares + 1) * each;
  }
  config.gpu_budget = static_cast<std::uint64_t>(std::max(room, kGiB));
  const double idle = workers * ((lanes + 1) * kContextBytes + lanes * kIdleBytes);
  const double spare = (config.spares > 0 ? config.spares + 1 : 0) * each;
  const double alone = static_cast<double>(least_free(gpus)) * kShareAlone - idle - spare;
  config.gpu_alone = static_cast<std::uint64_t>(std::max(alone, kGiB));
  notes.push_back(fmt::format("{} on {}", count_of(config.slots, "worker"), names_of(gpus)));
  return true;
}

}  // namespace assay
