#pragma once

// Relates the clocks of ranks by the ends of their collectives: all ranks leave an all-reduce
// together, so the ends of its parts are one moment on several clocks.

#include "timeline/model.h"

namespace assay::timeline {

// Shifts the times of ranks on other hosts (or on unknown hosts) onto the clock of the first rank,
// with a drift for each clock, and notes the residual. Ranks of one named host share a clock,
// unless their collectives contradict it. With too few collectives, or with ends that contradict
// each other, times stay as they are and the trace notes that nobody knows who waits.
void relate_by_collectives(Trace& trace);

}  // namespace assay::timeline
