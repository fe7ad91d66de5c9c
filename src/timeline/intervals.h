#pragma once

// Sets of time as sorted, disjoint intervals.

#include <span>
#include <vector>

#include "timeline/model.h"

namespace assay::timeline {

struct Interval {
  Nanos begin = 0;
  Nanos end = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};
using Intervals = std::vector<Interval>;

Intervals unite(Intervals any_order);  // sorts, and joins intervals that overlap or touch
Intervals intersect(std::span<const Interval> a, std::span<const Interval> b);
Intervals subtract(std::span<const Interval> a, std::span<const Interval> b);
// The total length.
Nanos measure(std::span<const Interval> set);

}  // namespace assay::timeline
