#include "timeline/analysis/memory.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <unordered_map>

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

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

// A block of memory; `begin` and `end` are indices of the place's points.
struct Block {
  std::size_t begin = 0;
  std::size_t end = kNever;
  std::int64_t bytes = 0;
  StringId where = kNoIndex;
  MemoryPhase phase = MemoryPhase::unknown;
};

// A block that is released without having been allocated is older than the recording.
std::vector<Block> blocks_of(const std::vector<MemoryPoint>& points) {
  std::vector<Block> blocks;
  std::unordered_map<std::uint64_t, std::size_t> open;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const MemoryPoint& point = points[i];
    if (point.bytes > 0) {
      open[point.address] = blocks.size();
      blocks.push_back({i, kNever, point.bytes, point.where, point.phase});
    } else if (point.bytes < 0) {
      const auto found = open.find(point.address);
      if (found == open.end()) {
        blocks.push_back({0, i, -point.bytes, kNoIndex, MemoryPhase::unknown});
      } else {
        blocks[found->second].end = i;
        open.erase(found);
      }
    }
  }
  return blocks;
}

// Tells what blocks are for.
class Sorter {
 public:
  Sorter(const std::vector<MemoryPoint>& points, const std::vector<Block>& blocks)
      : next_phase_(points.size(), kNever) {
    find_phases(points);
    for (const Block& block : blocks) {
      releases_gradients_ |= block.phase == MemoryPhase::backward && block.end != kNever &&
                             block.end > next_phase_[block.begin];
    }
  }

  MemoryCategory category(const Block& block) const {
    if (block.phase == MemoryPhase::unknown) return MemoryCategory::unknown;
    if (block.end != kNever && block.end < next_phase_[block.begin]) {
      return MemoryCategory::temporary;
    }
    switch (block.phase) {
      case MemoryPhase::setup:
        return MemoryCategory::parameters;
      case MemoryPhase::optimiser:
        return MemoryCategory::optimiser;
      case MemoryPhase::backward:
        // Gradients that are not set to None stay, like workspaces.
        return releases_gradients_ && is_kept(block) ? MemoryCategory::kept
                                                     : MemoryCategory::gradients;
      default:
        return is_kept(block) ? MemoryCategory::kept : MemoryCategory::activations;
    }
  }

 private:
  void find_phases(const std::vector<MemoryPoint>& points) {
    std::vector<std::size_t> run;  // allocations of the current phase
    MemoryPhase phase = MemoryPhase::unknown;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i].bytes <= 0 || points[i].phase == MemoryPhase::unknown) continue;
      if (points[i].phase != phase) {
        for (const std::size_t before : run) next_phase_[before] = i;
        run.clear();
        phase = points[i].phase;
        if (phase == MemoryPhase::optimiser) optimised_.push_back(i);
        trains_ |= phase == MemoryPhase::backward;
      }
      run.push_back(i);
    }
  }

  // Alive when the second optimiser step after it begins.
  bool is_kept(const Block& block) const {
    if (!trains_) return block.end == kNever;
    const auto first = std::ranges::upper_bound(optimised_, block.begin);
    return optimised_.end() - first > 1 && block.end > *std::next(first);
  }

  std::vector<std::size_t> next_phase_;  // by point: the next allocation in another phase
  std::vector<std::size_t> optimised_;   // the first allocation of each optimiser step
  bool trains_ = false;
  bool releases_gradients_ = false;
};

// What is alive at the point of the peak.
void describe_peak(const Trace& trace, const std::vector<MemoryPoint>& points, std::size_t at,
                   MemoryPeak& peak) {
  const std::vector<Block> blocks = blocks_of(points);
  if (blocks.empty()) return;
  const Sorter sorter(points, blocks);
  std::map<std::pair<MemoryCategory, std::string>, MemoryOwner> owners;
  std::int64_t known = 0;
  const auto add = [&](MemoryCategory category, std::string where, std::int64_t bytes) {
    peak.by_category[static_cast<std::size_t>(category)] += bytes;
    MemoryOwner& owner = owners[{category, where}];
    owner.where = std::move(where);
    owner.category = category;
    owner.bytes += bytes;
    ++owner.blocks;
    known += bytes;
  };
  for (const Block& block : blocks) {
    if (block.begin > at || block.end <= at) continue;
    add(sorter.category(block),
        block.where == kNoIndex ? "before the recording"
                                : std::string(trace.strings.text(block.where)),
        block.bytes);
  }
  if (known < peak.allocated) {
    add(MemoryCategory::unknown, "before the recording", peak.allocated - known);
  }
  for (auto& [key, owner] : owners) peak.owners.push_back(std::move(owner));
  std::ranges::stable_sort(peak.owners, std::greater{}, &MemoryOwner::bytes);
}

}  // namespace

std::string_view name(MemoryCategory category) {
  constexpr std::array<std::string_view, kMemoryCategories> kNames{
      "parameters", "gradients", "optimiser", "activations", "temporary", "kept", "unknown"};
  return kNames[static_cast<std::size_t>(category)];
}

std::vector<MemoryPeak> memory_peaks(const Trace& trace) {
  std::vector<MemoryPeak> peaks;
  for (const auto& [place, points] : points_by_place(trace)) {
    MemoryPeak peak{.rank = rank_of(trace, place.first), .device = place.second};
    std::size_t at = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      peak.reserved = std::max(peak.reserved, points[i].reserved);
      if (points[i].allocated > peak.allocated) {
        peak.allocated = points[i].allocated;
        at = i;
      }
    }
    peak.at = points[at].time;
    peak.reserved_then = points[at].reserved;
    describe_peak(trace, points, at, peak);
    for (const MemorySegments& segments : trace.memory_segments) {
      if (Place(segments.source, segments.device) == place) peak.segments = {segments};
    }
    peaks.push_back(std::move(peak));
  }
  return peaks;
}

std::vector<Counter> memory_counters(const Trace& trace) {
  std::vector<Counter> counters;
  for (const auto& [place, points] : points_by_place(trace)) {
    const std::string name = device_name(rank_of(trace, place.first), place.second);
    Counter allocated{name + " allocated bytes", {}};
    Counter reserved{name + " reserved bytes", {}};
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
