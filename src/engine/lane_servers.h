#pragma once

// The fork servers of a run and its lanes.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/mps.h"
#include "engine/engine.h"
#include "lane/fork_server.h"

namespace assay {

// Behind a lane's label: the property that is equal for equal builds.
inline constexpr std::string_view kBuildSuffix = ".build";

// The lanes of each slot and the servers that fork them. Two lanes of the same framework share a
// server.
struct Lanes {
  std::optional<MpsService> mps;  // ends after the servers and their lanes
  std::vector<ForkServer> servers;
  std::vector<std::string> labels;  // of the servers
  std::vector<wire::LaneSpecT> specs;
  std::vector<std::optional<std::size_t>> server_of;  // index in `servers`, by lane; goldens: none
  // In timed runs: servers for the lanes of retries. All forks of a server share where its code and
  // heap lie, which makes one process faster than another. From the same server a false result
  // would repeat.
  std::vector<ForkServer> retry_servers;  // in the order of `servers`
};

// Starts the servers, which import in the background.
Result<Lanes> start_lanes(const RunConfig& config, const RunObserver& observer);

// Waits for the imports, finds the device of each lane, and reports what a build cannot do.
Result<std::vector<ServerInfo>> wait_for_lanes(const RunConfig& config, Lanes& lanes,
                                               const RunObserver& observer);

// The build that has recorded the goldens.
std::string build_of_goldens(const GoldensConfig& goldens);

}  // namespace assay
