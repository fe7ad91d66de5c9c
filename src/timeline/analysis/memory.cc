#include "timeline/analysis/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace assay::timeline {
namespace {

using Place = std::pair<std::uint32_t, std::int32_t>;  // source, device

std::map<Place, std::vector<MemoryPoint>> points_by_place(const Trace& trace) {
  std::map<Place, std::vector<MemoryPoint>> places;
  for (const MemoryPoint& point : trace.memory) {
    places[{point.source, point.device}].push_back(point);
  }
  for (auto& [place, points] : places) {
    std::ranges::stable_sort(points, {}, &MemoryPoint::time);
  }
  return places;
}

std::int32_t rank_of(const Trace& trace, std::uint32_t source) {
  return source < trace.sources.size() ? trace.sources[source].rank : kNone;
}

std::string place_name(const Trace& trace, const Place& place) {
  const std::int32_t rank = rank_of(trace, place.first);
  const std::string device = place.second == kNone ? "host" : fmt::format("GPU {}", place.second);
  return rank == kNone ? device : fmt::format("rank {} · {}", rank, device);
}

}  // namespace

std::vector<MemoryPeak> memory_peaks(const Trace& trace) {
  std::vector<MemoryPeak> peaks;
  for (const auto& [place, points] : points_by_place(trace)) {
    MemoryPeak peak{.rank = rank_of(trace, place.first), .device = place.second};
    for (const MemoryPoint& point : points) {
      if (point.allocated > peak.allocated) {
        peak.allocated = point.allocated;
        peak.at = point.time;
      }
      peak.reserved = std::max(peak.reserved, point.reserved);
    }
    peaks.push_back(peak);
  }
  return peaks;
}

std::vector<Counter> memory_counters(const Trace& trace) {
  std::vector<Counter> counters;
  for (const auto& [place, points] : points_by_place(trace)) {
    Counter allocated{place_name(trace, place) + " allocated bytes", {}};
    Counter reserved{place_name(trace, place) + " reserved bytes", {}};
    for (const MemoryPoint& point : points) {
      allocated.points.emplace_back(point.time, static_cast<double>(point.allocated));
      reserved.points.emplace_back(point.time, static_cast<double>(point.reserved));
    }
    counters.push_back(std::move(allocated));
    counters.push_back(std::move(reserved));
  }
  return counters;
}

}  // namespace assay::timeline
