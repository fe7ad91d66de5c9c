#pragma once

// The number of launches that wait in each stream's queue. The host blocks on a full queue.

#include <string>
#include <vector>

#include "timeline/intervals.h"
#include "timeline/model.h"

namespace assay::timeline {

// Launches in a full queue.
inline constexpr std::int64_t kQueueDepth = 1024;

struct StreamQueue {
  std::uint32_t track = 0;
  std::string label;  // of the track
  std::int64_t deepest = 0;
  double mean = 0;  // from the first launch to the last start
  Intervals full;
};

// One entry for each stream with work of known launch.
std::vector<StreamQueue> stream_queues(const Trace& trace);

}  // namespace assay::timeline
