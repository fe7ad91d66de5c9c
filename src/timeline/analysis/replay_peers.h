#pragma once

// The operations of a replay, and how long they take at most if they do as their peers.

#include <cstdint>
#include <vector>

#include "timeline/analysis/analysis.h"
#include "timeline/analysis/collectives.h"
#include "timeline/model.h"

namespace assay::timeline {

struct Operation {
  std::uint32_t slice = 0;
  std::uint32_t device = 0;
  std::uint32_t step = 0;
  std::uint32_t host_step = 0;  // in which the host was while the operation was delayed
  std::uint32_t type = 0;
  std::uint32_t call = kNoIndex;  // of a collective: index into the report's calls
  std::uint32_t meeting = kNoIndex;
  Nanos begin = 0;  // since the first step's begin
  Nanos end = 0;
  Nanos delay = 0;        // from the end of the last operation that it follows to its begin
  Nanos held = 0;         // the part of the delay that is no wait for the host
  Nanos duration = 0;     // of a collective: the transfer
  Nanos usual_delay = 0;  // as its peers, if that is less
  Nanos ideal = 0;        // duration as its peers, if that is less
  std::uint32_t first_before = 0;  // the operations that it follows
  std::uint32_t count_before = 0;
};

// Sets ideal durations and usual delays: medians over the peers of the step, or over all steps for
// an operation without peers and for transfers. Jobs of one kind are peers, and transfers of one
// size; kernels are at the same position of their step or their micro batch. `operations` are
// ordered by begin.
void settle_peers(const Trace& trace, const Analysis& analysis, const CollectiveReport& collectives,
                  std::vector<Operation>& operations);

}  // namespace assay::timeline
