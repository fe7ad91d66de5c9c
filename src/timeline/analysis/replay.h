#pragma once

// What-if analysis by replay, after "Understanding Stragglers in Large Model Training Using What-if
// Analysis" (Lin et al., OSDI 2025): each step runs again with other durations. An operation starts
// when those that had ended before it on its device, and its predecessor on its stream, have ended.
// A collective ends when its last part has started and its transfer has passed.

#include <string>
#include <vector>

#include "timeline/analysis/analysis.h"
#include "timeline/analysis/collectives.h"
#include "timeline/model.h"

namespace assay::timeline {

// A part of the operations: one type, device or stage.
struct ReplayShare {
  std::string name;
  double slowdown = 1;  // with only these operations as recorded, over the ideal
  Nanos without = 0;    // the mean step with only these operations ideal
};

// In an ideal step every operation takes as long as the mean of its peers (the same job, or the
// kernel at the same position of the step, over devices and steps), a transfer as long as the
// median, and nothing waits for the host.
struct Replay {
  Nanos recorded = 0;  // the mean step, replayed; 0: not replayed
  Nanos prompt = 0;    // when nothing waits for the host
  Nanos ideal = 0;
  std::vector<ReplayShare> types;  // highest slowdown first, as are the others
  std::vector<ReplayShare> devices;
  std::vector<ReplayShare> stages;  // of pipelines

  double slowdown() const {
    return ideal > 0 ? static_cast<double>(prompt) / static_cast<double>(ideal) : 1;
  }
};

// Empty for a single device, for unrelated clocks and for more than ten million operations.
Replay replay(const Trace& trace, const Analysis& analysis, const CollectiveReport& collectives);

}  // namespace assay::timeline
