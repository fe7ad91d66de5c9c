#include "timeline/analysis/host_activity.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace assay::timeline {

HostActivity::HostActivity(const Trace& trace) : trace_(trace) {
  const auto add = [&](const auto& one) {
    const Track& track = trace.tracks[one.track];
    if (track.gpu || trace.strings.text(one.name).starts_with("ProfilerStep")) return;
    ranges_[track.source].push_back({one.begin, one.end, 0, one.name});
  };
  for (const HostCall& call : trace.host_calls) add(call);
  for (const Slice& slice : trace.slices) {
    if (trace.strings.text(slice.category) != "step") add(slice);  // marks of logs and merges
  }
  for (auto& [source, ranges] : ranges_) {
    std::ranges::sort(ranges, {}, &Range::begin);
    Nanos last = std::numeric_limits<Nanos>::min();
    for (Range& range : ranges) range.last_end = last = std::max(last, range.end);
  }
}

std::string_view HostActivity::in(std::uint32_t source, const Interval& gap) const {
  const auto mine = ranges_.find(source);
  if (mine == ranges_.end()) return {};
  const auto& ranges = mine->second;
  const Nanos half = (gap.end - gap.begin) / 2;
  std::string_view found;
  Nanos shortest = std::numeric_limits<Nanos>::max();
  auto range = std::ranges::upper_bound(ranges, gap.begin + half, {}, &Range::begin);
  while (range != ranges.begin() && std::prev(range)->last_end > gap.begin + half) {
    --range;
    const Nanos common = std::min(range->end, gap.end) - std::max(range->begin, gap.begin);
    if (common <= half || range->end - range->begin >= shortest) continue;
    shortest = range->end - range->begin;
    found = trace_.strings.text(range->name);
  }
  return found;
}

std::vector<HostShare> host_shares(const Trace& trace, const Analysis& analysis) {
  std::map<std::string_view, HostShare> shares;
  const HostActivity activity(trace);
  for (const DeviceReport& device : analysis.devices) {
    for (const Interval& gap : device.stalls) {
      const std::string_view did = activity.in(device.source, gap);
      if (did.empty()) continue;
      HostShare& share = shares[did];
      share.time += gap.end - gap.begin;
      ++share.gaps;
    }
  }
  std::vector<HostShare> sorted;
  for (auto& [what, share] : shares) {
    share.what = what;
    sorted.push_back(std::move(share));
  }
  std::ranges::stable_sort(sorted, std::greater{}, &HostShare::time);
  return sorted;
}

}  // namespace assay::timeline
