#include "timeline/intervals.h"

#include <algorithm>

namespace assay::timeline {

Intervals unite(Intervals any_order) {
  std::ranges::sort(any_order, {}, &Interval::begin);
  auto end = any_order.begin();  // of the result
  for (const Interval interval : any_order) {
    if (interval.end <= interval.begin) continue;
    if (end != any_order.begin() && interval.begin <= std::prev(end)->end) {
      std::prev(end)->end = std::max(std::prev(end)->end, interval.end);
    } else {
      *end++ = interval;
    }
  }
  any_order.erase(end, any_order.end());
  return any_order;
}

Intervals intersect(std::span<const Interval> a, std::span<const Interval> b) {
  // Long sets are often cut by short steps, so start where b begins.
  if (!b.empty()) {
    const auto first = std::ranges::partition_point(
        a, [&](const Interval& interval) { return interval.end <= b.front().begin; });
    a = a.subspan(static_cast<std::size_t>(first - a.begin()));
  }
  Intervals result;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const Interval common{std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end)};
    if (common.begin < common.end) result.push_back(common);
    ++(a[i].end < b[j].end ? i : j);
  }
  return result;
}

Intervals subtract(std::span<const Interval> a, std::span<const Interval> b) {
  Intervals result;
  std::size_t j = 0;
  for (Interval rest : a) {
    while (j < b.size() && b[j].end <= rest.begin) ++j;
    for (std::size_t k = j; k < b.size() && b[k].begin < rest.end; ++k) {
      if (b[k].begin > rest.begin) result.push_back({rest.begin, b[k].begin});
      rest.begin = std::max(rest.begin, b[k].end);
    }
    if (rest.begin < rest.end) result.push_back(rest);
  }
  return result;
}

Nanos measure(std::span<const Interval> set) {
  Nanos sum = 0;
  for (const Interval& interval : set) sum += interval.end - interval.begin;
  return sum;
}

}  // namespace assay::timeline
