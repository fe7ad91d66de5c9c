#include "timeline/analysis/critical_path.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "timeline/analysis/stage_links.h"
#include "timeline/intervals.h"

namespace assay::timeline {
namespace {

constexpr std::uint32_t kNobody = kNoIndex;

// Charges for gaps, numbered after all names.
enum class Idle : std::uint8_t { host, device, unknown, loader, stage };
constexpr std::array<std::string_view, 5> kIdleNames{
    "(host: launched late)", "(device: held back)", "(host: nothing was queued)",
    "(host: data loader)", "(handover to the next stage)"};

// Sums of times by a small number.
class Sums {
 public:
  explicit Sums(std::size_t size) : sums_(size) {}
  void add(std::size_t at, Nanos time) {
    if (sums_[at] == 0) used_.push_back(at);
    sums_[at] += time;
  }
  // Those that are not 0, which then are.
  template <typename Name>
  std::vector<PathShare> take(Name name) {
    std::vector<PathShare> shares;
    shares.reserve(used_.size());
    for (const std::size_t at : used_) shares.push_back({name(at), std::exchange(sums_[at], 0)});
    used_.clear();
    sort_shares(shares);
    return shares;
  }

 private:
  std::vector<Nanos> sums_;
  std::vector<std::size_t> used_;
};

class Walker {
 public:
  Walker(const Trace& trace, const Analysis& analysis, const CollectiveReport& collectives)
      : trace_(trace),
        analysis_(analysis),
        by_end_(analysis.devices.size()),
        place_(trace.slices.size(), 0),
        stage_links_(stage_links(trace, analysis, collectives)),
        loading_(loader_waits(trace)),
        kernels_(trace.strings.size() + kIdleNames.size()),
        ranks_(analysis.devices.size()) {
    for (std::uint32_t i = 0; i < trace.slices.size(); ++i) {
      const Slice& slice = trace.slices[i];
      const Track& track = trace.tracks[slice.track];
      if (!track.gpu || track.jobs || !is_gpu_work(slice.kind)) continue;
      const std::uint32_t device = device_of(i);
      if (by_end_[device].empty()) devices_.push_back(device);
      by_end_[device].push_back(i);
    }
    for (auto& mine : by_end_) {
      std::ranges::stable_sort(mine, {}, [&](auto at) { return trace.slices[at].end; });
      for (std::uint32_t i = 0; i < mine.size(); ++i) place_[mine[i]] = i;
    }
    for (const CollectiveCall& call : collectives.calls) {
      if (call.parts.size() < 2 || !trace.one_clock || trace.clocks_assumed) continue;
      const auto last = std::ranges::max_element(call.parts, {}, &CollectivePart::begin);
      for (const CollectivePart& part : call.parts) {
        waits_for_[static_cast<std::uint32_t>(part.slice)] =
            static_cast<std::uint32_t>(last->slice);
      }
    }
  }

  CriticalPath walk(const Interval& window) {
    CriticalPath path;
    std::uint32_t at = last_of_all(window);
    // After the last work, the step lasts until the host begins the next one.
    if (at != kNobody) {
      const Nanos end = trace_.slices[at].end;
      charge_host(Idle::host, device_of(at), {std::min(end, window.end), window.end}, path);
    } else if (!devices_.empty()) {
      charge_host(Idle::unknown, devices_.front(), window, path);  // a step without GPU work
    }
    // Each link ends before its successor, so the path is finite; the limit guards against damaged
    // traces.
    for (std::size_t links = 0; at != kNobody && links < trace_.slices.size(); ++links) {
      at = link(at, window, path);
    }
    path.by_kernel = kernels_.take([&](std::size_t what) { return name_of(what); });
    path.by_rank = ranks_.take(
        [&](std::size_t device) { return std::string_view(analysis_.devices[device].label); });
    return path;
  }

 private:
  std::uint32_t device_of(std::uint32_t slice) const {
    return static_cast<std::uint32_t>(analysis_.device_of[trace_.slices[slice].track]);
  }
  std::string_view name_of(std::size_t what) const {
    const std::size_t names = trace_.strings.size();
    return what < names ? trace_.strings.text(static_cast<StringId>(what))
                        : kIdleNames[what - names];
  }

  std::uint32_t last_of_all(const Interval& window) const {
    std::uint32_t last = kNobody;
    for (const std::uint32_t device : devices_) {
      const std::uint32_t candidate = before(by_end_[device], window.end, by_end_[device].size());
      if (candidate == kNobody || trace_.slices[candidate].end <= window.begin) continue;
      if (last == kNobody || trace_.slices[candidate].end > trace_.slices[last].end) {
        last = candidate;
      }
    }
    return last;
  }

  // The slice that ended last up to `time`, among the first `most`. `most` excludes a slice of no
  // duration from preceding itself.
  std::uint32_t before(const std::vector<std::uint32_t>& by_end, Nanos time,
                       std::size_t most) const {
    const auto end = by_end.begin() + static_cast<std::ptrdiff_t>(most);
    const auto behind = std::partition_point(
        by_end.begin(), end, [&](std::uint32_t slice) { return trace_.slices[slice].end <= time; });
    return behind == by_end.begin() ? kNobody : *std::prev(behind);
  }

  void charge(std::size_t what, std::uint32_t device, Nanos time, CriticalPath& path) {
    if (time <= 0) return;
    kernels_.add(what, time);
    ranks_.add(device, time);
    path.length += time;
  }
  void charge(Idle what, std::uint32_t device, Nanos time, CriticalPath& path) {
    charge(trace_.strings.size() + static_cast<std::size_t>(what), device, time, path);
  }

  // A wait for the host is the data loader's as long as the host was in it.
  void charge_host(Idle what, std::uint32_t device, const Interval& gap, CriticalPath& path) {
    const std::array<Interval, 1> cut{gap};
    const Nanos loading = measure(intersect(loading_[analysis_.devices[device].source], cut));
    charge(Idle::loader, device, loading, path);
    charge(what, device, gap.end - gap.begin - loading, path);
  }

  // Charges one link and returns its predecessor.
  std::uint32_t link(std::uint32_t at, const Interval& window, CriticalPath& path) {
    // A collective continues on the rank that came last.
    if (const auto last = waits_for_.find(at); last != waits_for_.end()) {
      const Nanos tail = trace_.slices[at].end - trace_.slices[last->second].end;
      if (last->second != at && tail >= 0) {
        charge(trace_.slices[at].name, device_of(at), tail, path);
      }
      at = last->second;
    }
    const Slice& slice = trace_.slices[at];
    const std::uint32_t device = device_of(at);
    charge(slice.name, device, slice.end - std::max(slice.begin, window.begin), path);
    if (slice.begin <= window.begin) return kNobody;
    const std::uint32_t previous = before(by_end_[device], slice.begin, place_[at]);
    const Nanos free_since =
        previous == kNobody ? window.begin : std::max(trace_.slices[previous].end, window.begin);
    const auto link = stage_links_.find(at);
    if (link != stage_links_.end() && trace_.slices[link->second].end > free_since) {
      charge(Idle::stage, device, slice.begin - trace_.slices[link->second].end, path);
      return link->second;
    }
    if (const Launch* launch = trace_.launch_of(slice)) {
      const Nanos launched = std::clamp(launch->end, free_since, slice.begin);
      charge_host(Idle::host, device, {free_since, launched}, path);
      charge(Idle::device, device, slice.begin - launched, path);
    } else {
      charge_host(Idle::unknown, device, {free_since, slice.begin}, path);
    }
    return previous == kNobody || trace_.slices[previous].end <= window.begin ? kNobody : previous;
  }

  const Trace& trace_;
  const Analysis& analysis_;
  std::vector<std::vector<std::uint32_t>> by_end_;  // by device: its slices
  std::vector<std::uint32_t> place_;                // by slice: index in its device's by_end_
  std::vector<std::uint32_t> devices_;              // with work, by their first slice
  std::map<std::uint32_t, std::uint32_t> waits_for_;
  std::unordered_map<std::uint32_t, std::uint32_t> stage_links_;
  std::map<std::uint32_t, Intervals> loading_;  // by source
  Sums kernels_;  // of the current step, by name id; Idle follows after all names
  Sums ranks_;
};

}  // namespace

void sort_shares(std::vector<PathShare>& shares) {
  std::ranges::sort(shares, [](const PathShare& a, const PathShare& b) {
    return a.time != b.time ? a.time > b.time : a.what < b.what;
  });
}

std::vector<CriticalPath> critical_paths(const Trace& trace, const Analysis& analysis,
                                         const CollectiveReport& collectives) {
  std::vector<CriticalPath> paths;
  // Times of unrelated clocks make no path.
  if (analysis.devices.empty() || (trace.sources.size() > 1 && !trace.one_clock)) return paths;
  Walker walker(trace, analysis, collectives);
  for (std::size_t i = 0; i < analysis.steps.size(); ++i) {
    const Interval window = analysis.windows[i];
    if (window.end <= window.begin) continue;
    CriticalPath path = walker.walk(window);
    path.step = analysis.steps[i].number;
    if (path.length > 0) paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace assay::timeline
