#pragma once

// The ends of arrows, by the slices that they are drawn at.

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
    std::uint64_t id = 0;  // of the arrow, never 0; arrows of another kind have other ids
    bool last = false;     // the arrow ends here
  };

  // An end lies in the innermost slice of its track around its time; one without a slice is left
  // out.
  explicit FlowPoints(const Trace& trace);

  // Those of the slice that begins then on this track; the outermost has them where several do.
  std::span<const Point> take(std::uint32_t track, Nanos begin);

 private:
  std::vector<Point> points_;  // sorted by track and begin
  std::vector<Nanos> taken_;   // by track: the last begin
};

}  // namespace assay::timeline
