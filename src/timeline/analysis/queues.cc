#include "timeline/analysis/queues.h"

#include <algorithm>
#include <map>
#include <utility>

namespace assay::timeline {
namespace {

// A launch lengthens the queue, a start shortens it. At equal times, launches come first.
struct Change {
  Nanos time = 0;
  std::int64_t by = 0;
};

StreamQueue queue_of(std::uint32_t track, std::vector<Change> changes) {
  std::ranges::sort(changes, [](const Change& a, const Change& b) {
    return a.time != b.time ? a.time < b.time : a.by > b.by;
  });
  StreamQueue queue;
  queue.track = track;
  std::int64_t depth = 0;
  double area = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    depth += changes[i].by;
    queue.deepest = std::max(queue.deepest, depth);
    if (i + 1 == changes.size()) break;
    const Interval here{changes[i].time, changes[i + 1].time};
    area += static_cast<double>(depth) * static_cast<double>(here.end - here.begin);
    if (depth >= kQueueDepth) queue.full.push_back(here);
  }
  queue.full = unite(std::move(queue.full));
  const Nanos span = changes.back().time - changes.front().time;
  if (span > 0) queue.mean = area / static_cast<double>(span);
  return queue;
}

}  // namespace

std::vector<StreamQueue> stream_queues(const Trace& trace) {
  std::map<std::uint32_t, std::vector<Change>> streams;
  std::vector<bool> seen(trace.launches.size());  // a CUDA graph is one launch of many kernels
  for (const Slice& slice : trace.slices) {
    if (slice.detail == kNoIndex || !trace.tracks[slice.track].gpu) continue;
    const std::uint32_t launch = trace.details[slice.detail].launch;
    if (launch == kNoIndex || seen[launch] || trace.launches[launch].begin > slice.begin) continue;
    seen[launch] = true;
    auto& changes = streams[slice.track];
    changes.push_back({trace.launches[launch].begin, 1});
    changes.push_back({slice.begin, -1});
  }
  std::vector<StreamQueue> queues;
  for (auto& [track, changes] : streams) {
    queues.push_back(queue_of(track, std::move(changes)));
    queues.back().label = trace.tracks[track].label;
  }
  return queues;
}

}  // namespace assay::timeline
