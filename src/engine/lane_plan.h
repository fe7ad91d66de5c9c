#pragma once

// The lanes of a run: what its mode asks for, with the frameworks, devices and executions that the
// run puts in. Nothing is started here.

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

// The test lane first. No two have one label: lanes of one name are told apart by what they differ
// in.
std::vector<PlannedLane> plan_lanes(const RunConfig& config);

// Where a lane with this device sits in that slot: "cpu", "gpu:2".
std::string device_in_slot(const RunConfig& config, const std::string& device, std::uint32_t slot);

// The device that this slot compares results on, as "gpu:2"; empty where that is the host.
std::string compared_on(const RunConfig& config, const std::vector<wire::LaneSpecT>& lanes,
                        std::uint32_t slot);

// What the cases of all slots may need at once. A case that is on GPUs in all of its lanes needs
// none of the host's memory to speak of.
MemoryBudget memory_budget(const RunConfig& config, const std::vector<wire::LaneSpecT>& lanes);

// An error where nothing is called like one of the lane's executions.
Status check_execution(const ServerInfo& info, const wire::LaneSpecT& spec);

// Puts a device of this build in the place of "custom"; an error where the build has none, or not
// the one that the lane names.
Status place_lane(const ServerInfo& info, wire::LaneSpecT& spec);

}  // namespace assay
