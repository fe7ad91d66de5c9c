#pragma once

// What-if analysis by replay, after "Understanding Stragglers in Large Model Training Using What-if
// Analysis" (Lin et al., OSDI 2025): each step runs again with other durations. An operation starts
// when those that had ended before it on its device, and its predecessor on its stream, have ended.
// A collective ends when its last part has started and its transfer has passed. A pipeline stage
// follows its neighbours (stage_links.h).

#include <string>
#include <vector>

#include "timeline/analysis/analysis.h"
#include "timeline/analysis/collectives.h"
#include "timeline/analysis/culprits.h"
#include "timeline/model.h"

namespace assay::timeline {

// A part of the operations: one type, device or stage.
struct ReplayShare {
  std::string name;
  double slowdown = 1;  // with only these operations as recorded, over the ideal
  Nanos without = 0;    // the mean step as recorded, with only these operations ideal
};

// In an ideal step no operation takes longer than the median of its peers (the same kernel at the
// same position of the step, or of the micro batch, over devices; over steps for one without peers;
// transfers of one size over all), and nothing waits for the host.
struct Replay {
  Nanos recorded = 0;  // the mean step, replayed; 0: not replayed
  std::string reason;  // why the replay confirms nothing; empty: it does
  Nanos silent = 0;    // when transfers take no time
  Nanos prompt = 0;    // when nothing waits for the host
  Nanos ideal = 0;
  std::vector<ReplayShare> types;  // highest slowdown first, as are the others
  std::vector<ReplayShare> devices;
  std::vector<ReplayShare> stages;  // of pipelines

  double slowdown() const {
    return ideal > 0 ? static_cast<double>(prompt) / static_cast<double>(ideal) : 1;
  }
};

// Sets the gains of the culprits. Only a reason for unrelated clocks and for too many operations.
Replay replay(const Trace& trace, const Analysis& analysis, const CollectiveReport& collectives,
              std::vector<Culprit>& culprits);

}  // namespace assay::timeline
