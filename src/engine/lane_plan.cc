#include "engine/lane_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "device/device.h"
#include "verdict/mode.h"

namespace assay {
namespace {

constexpr std::string_view kEager = "eager";
constexpr std::string_view kCpu = "cpu";
constexpr std::string_view kCustom = "custom";
// PyTorch's name of a device until somebody renames it.
constexpr std::string_view kPrivate = "privateuseone";
constexpr std::string_view kRenamePrivate =
    "; let the module that registers the device call "
    "torch.utils.rename_privateuse1_backend(\"NAME\") and torch._register_device_module(\"NAME\", "
    "…), and name the lane's device NAME:0";

// Executions nested around each other, the innermost first; "eager" adds nothing.
std::string joined(std::initializer_list<std::string_view> executions) {
  std::string all;
  for (const std::string_view execution : executions) {
    if (execution.empty() || execution == kEager) continue;
    all += fmt::format("{}{}", all.empty() ? "" : "+", execution);
  }
  return all.empty() ? std::string(kEager) : all;
}

std::string device_of(const ModeLane& lane, const LaneConfig& config) {
  if (lane.device == kCpu) return std::string(kCpu);
  std::string own = config.device.empty() ? std::string(kCpu) : config.device;
  if (lane.device == kNextDevice) return own == kAnyGpu ? std::string(kNextGpu) : own;
  if (lane.device.empty() || own != kCpu) return own;
  return std::string(lane.device);
}

// The lane that gave the goldens, as far as records and verdicts know it.
PlannedLane lane_of_goldens(const GoldensConfig& goldens) {
  const auto fact = [&](const char* key) { return fact_of(goldens, key); };
  PlannedLane planned;
  planned.spec.role = wire::Role::reference;
  planned.spec.label = fact(kReferenceLane);
  planned.spec.framework = fact("reference.framework");
  planned.spec.device = kCpu;  // of the copies that are compared
  planned.spec.execution = fact("reference.execution");
  planned.spec.reference_functions = fact("reference.functions") == "tables";
  planned.spec.no_gradients = fact(kNoGradients) == "true";
  planned.spec.goldens = goldens.folder;
  planned.spec.goldens_url = goldens.url;
  return planned;
}

// The difference between this lane and another with the same name.
std::string difference(const wire::LaneSpecT& spec, const wire::LaneSpecT& other) {
  if (spec.execution != other.execution) return spec.execution;
  if (kind_of(spec.device) != kind_of(other.device)) return std::string(kind_of(spec.device));
  if (spec.device != other.device) return spec.device;
  return wire::EnumNameRole(spec.role);
}

void tell_apart(std::vector<PlannedLane>& lanes) {
  std::vector<std::string> labels;
  for (const PlannedLane& lane : lanes) {
    std::string label = lane.spec.label;
    for (const PlannedLane& other : lanes) {
      if (&other != &lane && other.spec.label == lane.spec.label) {
        label += "-" + difference(lane.spec, other.spec);
        break;
      }
    }
    labels.push_back(std::move(label));
  }
  for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i].spec.label = std::move(labels[i]);
}

}  // namespace

std::string_view kind_of(std::string_view device) { return device.substr(0, device.find(':')); }

std::vector<PlannedLane> plan_lanes(const RunConfig& config) {
  std::vector<PlannedLane> lanes;
  for (const ModeLane& lane : mode_of(config).lanes) {
    if (config.records && lane.role != wire::Role::reference) continue;
    if (config.goldens && lane.role == wire::Role::reference) {
      lanes.push_back(lane_of_goldens(*config.goldens));
      continue;
    }
    const LaneConfig& chosen = lane_config(config, lane);
    PlannedLane planned;
    planned.framework = chosen.framework;
    planned.spec.role = lane.role;
    planned.spec.label = chosen.label.empty() ? chosen.framework.name : chosen.label;
    planned.spec.framework = chosen.framework.name;
    planned.spec.device = device_of(lane, chosen);
    const bool refers =
        lane.role == wire::Role::reference || lane.framework == wire::Role::reference;
    planned.spec.reference_functions =
        chosen.reference_functions.value_or(refers && chosen.framework.name == kTablesFramework);
    planned.spec.execution = joined({config.amp ? "amp" : "", chosen.execution, lane.execution});
    planned.spec.dump_dir = config.dump_dir;
    std::error_code error;
    if (config.records) {
      planned.spec.digest = config.digest;
      planned.spec.records_to = std::filesystem::absolute(config.folder, error).string();
    }
    lanes.push_back(std::move(planned));
  }
  // If one lane can call only functions of the tables, the others need not try more.
  const bool known_only = std::any_of(lanes.begin(), lanes.end(), [](const PlannedLane& lane) {
    return lane.spec.reference_functions;
  });
  for (PlannedLane& lane : lanes) lane.spec.known_only = known_only;
  tell_apart(lanes);
  return lanes;
}

bool is_gpu(std::string_view device) { return kind_of(device) == kAnyGpu; }

std::string device_in_slot(const RunConfig& config, const std::string& device, std::uint32_t slot) {
  if ((device != kAnyGpu && device != kNextGpu) || config.gpus.empty()) return device;
  const std::size_t index = slot + (device == kNextGpu ? 1 : 0);
  return fmt::format("gpu:{}", config.gpus[index % config.gpus.size()]);
}

std::string compared_on(const RunConfig& config, const std::vector<wire::LaneSpecT>& lanes,
                        std::uint32_t slot) {
  for (const wire::LaneSpecT& lane : lanes) {
    const std::string device = device_in_slot(config, lane.device, slot);
    if (gpu_number(device)) return device;
  }
  return "";
}

MemoryBudget memory_budget(const RunConfig& config, const std::vector<wire::LaneSpecT>& lanes) {
  const auto on_gpu = static_cast<std::size_t>(std::count_if(
      lanes.begin(), lanes.end(), [](const wire::LaneSpecT& lane) { return is_gpu(lane.device); }));
  MemoryBudget budget{config.memory_budget, 0, 0};
  if (on_gpu == 0 || config.gpus.empty()) return budget;
  if (on_gpu == lanes.size()) budget.all = std::numeric_limits<std::uint64_t>::max();
  budget.each_gpu = config.gpu_budget / on_gpu;
  // Lanes that name their GPU are on it in every slot, so all slots share one budget.
  const bool named = std::ranges::any_of(
      lanes, [](const wire::LaneSpecT& lane) { return gpu_number(lane.device).has_value(); });
  budget.gpus = named ? 1 : config.gpus.size();
  budget.gpu_alone = config.gpu_alone;
  return budget;
}

bool compiles_kernels(const RunConfig& config, const std::vector<wire::LaneSpecT>& lanes) {
  const auto has_modules = [](const LaneConfig& lane) {
    return std::ranges::any_of(lane.framework.environment, [](const std::string& entry) {
      return entry.starts_with(kModules) || entry.starts_with(kModulesInLane);
    });
  };
  return has_modules(config.test) || has_modules(config.reference) ||
         std::ranges::any_of(lanes, [](const wire::LaneSpecT& lane) {
           return lane.execution.find("compile") != std::string::npos;
         });
}

Status check_execution(const ServerInfo& info, const wire::LaneSpecT& spec) {
  for (const std::string& part : split_at(spec.execution, '+')) {
    const std::string way = part.substr(0, part.find('='));  // threads=4
    if (std::find(info.executions.begin(), info.executions.end(), way) == info.executions.end()) {
      return usage_error(fmt::format("{}: no execution is called {}; there are: {}", spec.label,
                                     way, fmt::join(info.executions, ", ")));
    }
  }
  return {};
}

Status place_lane(const ServerInfo& info, wire::LaneSpecT& spec) {
  const std::string_view kind = kind_of(spec.device);
  const auto refuse = [&](std::string_view what) {
    return usage_error(fmt::format(
        "{}: {} {} has no {}; this build has: {}{}", spec.label, info.framework, info.version, what,
        fmt::join(info.devices, ", "), kind == kPrivate ? kRenamePrivate : ""));
  };
  if (spec.device == kCustom) {
    const auto other = std::find_if(info.devices.begin(), info.devices.end(),
                                    [](const std::string& device) { return device != kCpu; });
    if (other == info.devices.end()) return refuse("device beside the CPU");
    spec.device = *other + ":0";
    return {};
  }
  if (std::find(info.devices.begin(), info.devices.end(), kind) != info.devices.end()) return {};
  if (kind != kAnyGpu) return refuse(fmt::format("device {}", kind));
  return refuse(spec.role == wire::Role::test
                    ? "CUDA (--test_cpu runs the test lane on the CPU, --num_gpus=0 all lanes)"
                    : "CUDA (--num_gpus=0 runs all lanes on the CPU)");
}

}  // namespace assay
