#pragma once

// The lanes of a run: those of its mode, with the frameworks, devices and executions of the run.
// Starts nothing.

#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/run_config.h"
#include "lane/fork_server.h"
#include "schedule/queue.h"

namespace assay {

struct PlannedLane {
  FrameworkConfig framework;
  wire::LaneSpecT spec;  // without the address of a server
};

// The test lane first. Labels are unique: lanes of the same name get a suffix that tells their
// difference.
std::vector<PlannedLane> plan_lanes(const RunConfig& config);

// Whether this is a GPU, named ("gpu:2") or not ("gpu").
bool is_gpu(std::string_view device);

// The device of such a lane in this slot: "cpu", "gpu:2".
std::string device_in_slot(const RunConfig& config, const std::string& device, std::uint32_t slot);

// The GPU on which this slot compares results, such as "gpu:2"; empty: the host.
std::string compared_on(const RunConfig& config, const std::vector<wire::LaneSpecT>& lanes,
                        std::uint32_t slot);

// The memory that cases of all slots may need at once. A case whose lanes are all on GPUs needs
// hardly any memory of the host.
MemoryBudget memory_budget(const RunConfig& config, const std::vector<wire::LaneSpecT>& lanes);

// Whether the first call of a kernel may compile it: in a lane with modules of its own, or one that
// compiles graphs.
bool compiles_kernels(const RunConfig& config, const std::vector<wire::LaneSpecT>& lanes);

// "gpu" of "gpu:2".
std::string_view kind_of(std::string_view device);

// Fails if an execution of the lane does not exist.
Status check_execution(const ServerInfo& info, const wire::LaneSpecT& spec);

// Replaces "custom" by a device of this build. Fails if the build has none, or lacks the named one.
Status place_lane(const ServerInfo& info, wire::LaneSpecT& spec);

}  // namespace assay
