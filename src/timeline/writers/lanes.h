#pragma once

// A viewer shows only nested slices in one row. Slices that overlap without nesting go to another
// lane of the track.

#include <cstddef>
#include <vector>

#include "timeline/model.h"

namespace assay::timeline {

class Lanes {
 public:
  explicit Lanes(std::size_t tracks) : lanes_(tracks) {}

  // The first lane in which the slice nests; adds a lane if there is none.
  std::size_t open(const Slice& slice) {
    auto& lanes = lanes_[slice.track];
    std::size_t lane = 0;
    while (lane < lanes.size() && !lanes[lane].empty() && slice.end > lanes[lane].back()) ++lane;
    if (lane == lanes.size()) lanes.emplace_back();
    lanes[lane].push_back(slice.end);
    return lane;
  }

  // The lane of an ending slice, or the number of lanes for an unknown slice. Slices with equal
  // ends are interchangeable: all of them close at this time.
  std::size_t close(const Slice& slice) {
    auto& lanes = lanes_[slice.track];
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      if (lanes[lane].empty() || lanes[lane].back() != slice.end) continue;
      lanes[lane].pop_back();
      return lane;
    }
    return lanes.size();
  }

 private:
  std::vector<std::vector<std::vector<Nanos>>> lanes_;  // by track, by lane: ends, outermost first
};

}  // namespace assay::timeline
