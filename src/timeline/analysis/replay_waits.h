#pragma once

// Which operations an operation of a replay waits for.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "timeline/analysis/replay_peers.h"
#include "timeline/model.h"

namespace assay::timeline {

// An operation waits for its predecessor on its stream, for the slice that `links` names, and on
// each other stream of its device for the last operation that had ended when it began: in all
// steps, at this position. What had ended in some steps only is no dependency. Sets first_before
// and count_before, which point into the result. `operations` are ordered by begin.
std::vector<std::uint32_t> find_waits(const Trace& trace, std::size_t steps,
                                      const std::unordered_map<std::uint32_t, std::uint32_t>& links,
                                      std::vector<Operation>& operations);

}  // namespace assay::timeline
