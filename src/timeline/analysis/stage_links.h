#pragma once

// Which work of a pipeline stage waits for which work of its neighbours.

#include <cstdint>
#include <unordered_map>

#include "timeline/analysis/analysis.h"
#include "timeline/analysis/collectives.h"
#include "timeline/model.h"

namespace assay::timeline {

// By slice: the slice that it follows. The first compute of a forward or backward follows the last
// compute of the same micro batch on the stage that it comes from. Both are indices of slices.
// Empty where the transfers between the stages are known: then work follows its transfer.
std::unordered_map<std::uint32_t, std::uint32_t> stage_links(const Trace& trace,
                                                             const Analysis& analysis,
                                                             const CollectiveReport& collectives);

}  // namespace assay::timeline
