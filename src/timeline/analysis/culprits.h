#pragma once

// Who makes steps longer: ranks, hosts, pipeline stages and links that are slower than their peers,
// with the cause and the step at which it began.

#include <string>
#include <vector>

#include "timeline/analysis/analysis.h"
#include "timeline/analysis/collectives.h"
#include "timeline/model.h"

namespace assay::timeline {

struct Culprit {
  std::string kind;                 // "rank", "host", "stage", "link"
  std::string name;                 // "rank 3", "host node2", "stage 1", "ranks 0, 8, 16"
  std::string cause;                // "slow GPU", "data loader", …
  std::vector<std::int32_t> ranks;  // whom it concerns
  std::int64_t since = 0;           // number of the first step
  std::string operation;            // of a slow GPU: the kernel that costs most; else empty
  Nanos excess = 0;                 // longer than its peers, by step, since then
};

// The largest excess first. Peers are the ranks of one pipeline stage, or all ranks; a stage's
// peers are the other stages; a link's are the groups of equal size with equal calls. Nobody is
// named for less than a thirtieth of a step, or for less than several times the spread of the
// peers.
std::vector<Culprit> culprits_of(const Trace& trace, const Analysis& analysis,
                                 const CollectiveReport& collectives);

}  // namespace assay::timeline
