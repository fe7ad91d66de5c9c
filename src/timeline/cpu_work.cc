#include "timeline/cpu_work.h"

#include <algorithm>
#include <map>
#include <set>

#include "timeline/importers/chrome_collectives.h"

namespace assay::timeline {
namespace {

bool is_operator(std::string_view category, std::string_view name) {
  return (category == "cpu_op" || category == "Operator") && !name.starts_with("c10d::") &&
         !name.starts_with("record_param_comms");
}

class CpuWork {
 public:
  explicit CpuWork(Trace& trace) : trace_(trace) {
    for (const Track& track : trace.tracks) {
      if (track.gpu) with_gpu_.insert(track.source);
    }
    for (const CollectiveRange& range : trace.collective_ranges) {
      collectives_[{range.track, range.begin}] = range.collective;
    }
  }

  void add() {
    const std::size_t count = trace_.slices.size();
    for (std::size_t i = 0; i < count; ++i) take(trace_.slices[i]);
    if (trace_.slices.size() > count) trace_.sort();
  }

 private:
  void take(Slice slice) {
    const std::uint32_t thread = slice.track;
    if (with_gpu_.contains(trace_.tracks[thread].source)) return;
    const std::string_view name = trace_.strings.text(slice.name);
    if (is_cpu_collective(name)) {
      slice.kind = Kind::communication;
      slice.detail = detail_of(slice, thread);
    } else if (is_operator(trace_.strings.text(slice.category), name)) {
      // Slices are ordered by begin, outer ones first.
      Nanos& end = covered_[thread];
      if (slice.begin < end) return;
      end = slice.end;
      slice.kind = Kind::compute;
      slice.detail = kNoIndex;
    } else {
      return;
    }
    slice.category = trace_.strings.intern_valid(timeline::name(slice.kind));
    slice.track = track_of(thread);
    trace_.slices.push_back(slice);
  }

  std::uint32_t detail_of(const Slice& slice, std::uint32_t thread) {
    const auto found = collectives_.find({thread, slice.begin});
    if (found == collectives_.end()) return kNoIndex;
    Collective& collective = trace_.collectives[found->second];
    const auto& groups = trace_.sources[trace_.tracks[thread].source].groups;
    if (trace_.strings.text(collective.group).empty() && groups.size() == 1) {
      const auto& [group, members] = *groups.begin();
      collective.group = trace_.strings.intern(group);
      collective.description = trace_.strings.intern(members.description);
      if (!members.ranks.empty()) {
        collective.group_size = static_cast<std::int32_t>(members.ranks.size());
      }
    }
    Detail detail = slice.detail == kNoIndex ? Detail{} : trace_.details[slice.detail];
    detail.collective = found->second;
    trace_.details.push_back(detail);
    return static_cast<std::uint32_t>(trace_.details.size() - 1);
  }

  std::uint32_t track_of(std::uint32_t thread) {
    const auto [entry, is_new] = tracks_.try_emplace(
        trace_.tracks[thread].source, static_cast<std::uint32_t>(trace_.tracks.size()));
    if (!is_new) return entry->second;
    Track track = trace_.tracks[thread];
    track.label = kCpuLabel;
    track.chrome_tid.clear();
    track.gpu = true;
    trace_.tracks.push_back(std::move(track));
    return entry->second;
  }

  Trace& trace_;
  std::set<std::uint32_t> with_gpu_;                                      // sources
  std::map<std::pair<std::uint32_t, Nanos>, std::uint32_t> collectives_;  // by track and begin
  std::map<std::uint32_t, Nanos> covered_;         // by thread: until when its operators last
  std::map<std::uint32_t, std::uint32_t> tracks_;  // by source
};

}  // namespace

void add_cpu_work(Trace& trace) {
  if (std::ranges::all_of(trace.sources, &Source::dump)) return;
  CpuWork(trace).add();
}

}  // namespace assay::timeline
