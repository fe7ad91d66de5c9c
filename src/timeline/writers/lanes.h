#pragma once

// A viewer's row shows slices that nest. Those of a track that only overlap go to a lane beside it.

#include <cstddef>
#include <vector>

#include "timeline/model.h"

namespace assay::timeline {

class Lanes {
 public:
  explicit Lanes(std::size_t tracks) : lanes_(tracks) {}

  // The lane of its track that a beginning slice fits in; a new one's number is the count of
  // lanes that there were.
  std::size_t open(const Slice& slice) {
    auto& lanes = lanes_[slice.track];
    std::size_t lane = 0;
    while (lane < lanes.size() && !lanes[lane].empty() && slice.end > lanes[lane].back()) ++lane;
    if (lane == lanes.size()) lanes.emplace_back();
    lanes[lane].push_back(slice.end);
    return lane;
  }

  // The lane of the slice that ends. Of two whose innermost slice ends now either may close: both
  // will, at this time. The count of lanes, when there is none.
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
