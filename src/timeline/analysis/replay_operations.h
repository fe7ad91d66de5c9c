#pragma once

// The operations of a replay, what they wait for, and how long they take at most if they do as
// their peers.

#include <cstdint>
#include <unordered_map>
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
  std::uint32_t call = kNoIndex;   // of a collective: index into the report's calls
  std::uint32_t first_before = 0;  // the operations that it follows
  std::uint32_t count_before = 0;
  Nanos delay = 0;        // from the end of the last operation that it follows to its begin
  Nanos held = 0;         // the part of the delay that is no wait for the host
  Nanos duration = 0;     // of a collective: the transfer
  Nanos usual_delay = 0;  // as its peers, if that is less
  Nanos ideal = 0;        // duration as its peers, if that is less
};

// An operation waits for its predecessor on its stream, for the slice that `links` names, and on
// each other stream of its device for the last operation that had ended when it began: in all
// steps, at this position. What had ended in some steps only is no dependency. Sets first_before
// and count_before, which point into the result. `operations` are ordered by begin.
std::vector<std::uint32_t> find_waits(const Trace& trace, std::size_t steps,
                                      const std::unordered_map<std::uint32_t, std::uint32_t>& links,
                                      std::vector<Operation>& operations);

// Sets ideal durations and usual delays: medians over the peers of the step, or over all steps for
// an operation without peers and for transfers. Jobs of one kind are peers, and transfers of one
// size; kernels are at the same position of their step or their micro batch. `operations` are
// ordered by begin.
void settle_peers(const Trace& trace, const Analysis& analysis, const CollectiveReport& collectives,
                  std::vector<Operation>& operations);

}  // namespace assay::timeline
