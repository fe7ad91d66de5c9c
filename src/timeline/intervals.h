#pragma once

// Sets of time as sorted, disjoint intervals.

#include <algorithm>
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
// The innermost element that contains a time, or null. The elements nest, and are ordered by begin
// and then the longer first. Searches at most kMaxSearched elements.
template <typename T>
const T* innermost(const std::vector<T>& ranges, Nanos time) {
  constexpr int kMaxSearched = 1000;
  auto it = std::ranges::upper_bound(ranges, time, {}, &T::begin);
  for (int searched = 0; it != ranges.begin() && searched < kMaxSearched; ++searched) {
    --it;
    if (time < it->end) return &*it;
  }
  return nullptr;
}

// The total length.
Nanos measure(std::span<const Interval> set);

}  // namespace assay::timeline
