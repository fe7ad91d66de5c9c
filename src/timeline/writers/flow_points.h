#pragma once

// Finds the slices at the ends of arrows.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "timeline/model.h"

namespace assay::timeline {

class FlowPoints {
 public:
  struct Point {
    std::uint32_t track = 0;
    Nanos begin = 0;       // of its slice
    std::uint64_t id = 0;  // of the arrow; never 0; unique across categories
    bool last = false;     // the arrow ends here
  };

  // Attaches each end to the innermost slice at its time and track. Drops ends without a slice.
  explicit FlowPoints(const Trace& trace);

  // The points of the slice that begins at this time. If several begin, the first call gets all.
  std::span<const Point> take(std::uint32_t track, Nanos begin);

 private:
  std::vector<Point> points_;  // sorted by track and begin
  std::vector<Nanos> taken_;   // by track: the last begin
};

}  // namespace assay::timeline
