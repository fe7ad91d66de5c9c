#include "timeline/writers/flow_points.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

namespace assay::timeline {
namespace {

using SpansOfTrack = std::vector<std::pair<Nanos, Nanos>>;  // begin, end; sorted

std::optional<Nanos> slice_at(const SpansOfTrack& spans, Nanos time) {
  constexpr int kMaxLook = 1000;  // most earlier siblings to search
  auto it = std::ranges::upper_bound(spans, time, {}, &SpansOfTrack::value_type::first);
  for (int looked = 0; it != spans.begin() && looked < kMaxLook; ++looked) {
    --it;
    if (time <= it->second) return it->first;
  }
  return std::nullopt;
}

}  // namespace

FlowPoints::FlowPoints(const Trace& trace)
    : taken_(trace.tracks.size(), std::numeric_limits<Nanos>::min()) {
  if (trace.flows.empty()) return;
  std::vector<SpansOfTrack> spans(trace.tracks.size());
  for (const Slice& slice : trace.slices) spans[slice.track].emplace_back(slice.begin, slice.end);
  for (const Flow& flow : trace.flows) {
    const auto begin = slice_at(spans[flow.track], flow.time);
    if (!begin) continue;
    const std::uint64_t id = (std::uint64_t{flow.category} << 32U | flow.id) + 1;
    points_.push_back({flow.track, *begin, id, flow.phase == 'f'});
  }
  std::ranges::sort(points_, [](const Point& a, const Point& b) {
    return std::tie(a.track, a.begin, a.id) < std::tie(b.track, b.begin, b.id);
  });
}

std::span<const FlowPoints::Point> FlowPoints::take(std::uint32_t track, Nanos begin) {
  if (points_.empty() || taken_[track] == begin) return {};
  const auto first = std::ranges::partition_point(points_, [&](const Point& point) {
    return std::tie(point.track, point.begin) < std::tie(track, begin);
  });
  const auto last = std::partition_point(first, points_.end(), [&](const Point& point) {
    return point.track == track && point.begin == begin;
  });
  if (first == last) return {};
  taken_[track] = begin;
  return {first, last};
}

}  // namespace assay::timeline
