#pragma once

// How many launches waited for their stream at a time. A host that meets a full queue waits, too.

#include <string>
#include <vector>

#include "timeline/intervals.h"
#include "timeline/model.h"

namespace assay::timeline {

// So many launches can wait; the next one's call blocks.
inline constexpr std::int64_t kQueueDepth = 1024;

struct StreamQueue {
  std::uint32_t track = 0;
  std::string label;  // of the track
  std::int64_t deepest = 0;
  double mean = 0;  // over the time from the first launch to the last start
  Intervals full;
};

// Of each stream with work whose launch is known.
std::vector<StreamQueue> stream_queues(const Trace& trace);

}  // namespace assay::timeline
