#include "timeline/analysis/critical_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "timeline/analysis/stage_links.h"
#include "timeline/cpu_work.h"
#include "timeline/intervals.h"

namespace assay::timeline {
namespace {

constexpr std::uint32_t kNobody = kNoIndex;

// Charges for gaps, numbered after all names.
enum class Idle : std::uint8_t { host, device, unknown, loader, stage };
constexpr std::array<std::string_view, 5> kIdleNames{
    "(host: launched late)", "(device: held back)", "(host: nothing was queued)",
    "(host: data loader)", "(handover to the next stage)"};

// The work of a device, ordered by end.
struct Worker {
  std::string label;
  std::uint32_t source = 0;
  std::vector<std::uint32_t> by_end;  // slices
};

class Walker {
 public:
  Walker(const Trace& trace, const Analysis& analysis, const CollectiveReport& collectives)
      : trace_(trace),
        worker_of_(trace.slices.size(), kNobody),
        place_(trace.slices.size(), 0),
        stage_links_(stage_links(trace, analysis, collectives)) {
    std::map<std::tuple<std::int32_t, std::string, std::int64_t, std::int32_t>, std::uint32_t>
        known;
    for (std::uint32_t i = 0; i < trace.slices.size(); ++i) {
      const Slice& slice = trace.slices[i];
      const Track& track = trace.tracks[slice.track];
      if (!track.gpu || track.jobs || !is_gpu_work(slice.kind)) continue;
      const auto [entry, is_new] =
          known.try_emplace({track.rank, track.machine, track.pid, track.device},
                            static_cast<std::uint32_t>(workers_.size()));
      if (is_new) workers_.push_back({label_of(track), track.source, {}});
      worker_of_[i] = entry->second;
      workers_[entry->second].by_end.push_back(i);
    }
    for (Worker& worker : workers_) {
      std::ranges::stable_sort(worker.by_end, {}, [&](auto at) { return trace.slices[at].end; });
      for (std::uint32_t i = 0; i < worker.by_end.size(); ++i) place_[worker.by_end[i]] = i;
    }
    loading_ = loader_waits(trace);
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
    charges_.clear();
    ranks_.clear();
    std::uint32_t at = last_of_all(window);
    // After the last work, the step lasts until the host begins the next one.
    if (at != kNobody) {
      const Nanos end = trace_.slices[at].end;
      charge_host(Idle::host, worker_of_[at], {std::min(end, window.end), window.end}, path);
    } else if (!workers_.empty()) {
      charge_host(Idle::unknown, 0, window, path);  // a step without GPU work
    }
    // Each link ends before its successor, so the path is finite; the limit guards against damaged
    // traces.
    for (std::size_t links = 0; at != kNobody && links < trace_.slices.size(); ++links) {
      at = link(at, window, path);
    }
    std::map<std::string, Nanos> kernels;
    for (const auto& [what, time] : charges_) kernels[name_of(what)] += time;
    path.by_kernel = sorted_shares(kernels);
    path.by_rank = sorted_shares(ranks_);
    return path;
  }

 private:
  static std::string label_of(const Track& track) {
    if (track.device == kNone && is_cpu(track.label)) return track.label;
    return track.rank == kNone ? fmt::format("GPU:{}", track.device)
                               : fmt::format("rank {} · GPU {}", track.rank, track.device);
  }
  std::string name_of(std::size_t what) const {
    const std::size_t names = trace_.strings.size();
    return std::string(what < names ? trace_.strings.text(static_cast<StringId>(what))
                                    : kIdleNames[what - names]);
  }

  std::uint32_t last_of_all(const Interval& window) const {
    std::uint32_t last = kNobody;
    for (const Worker& worker : workers_) {
      const std::uint32_t candidate = before(worker, window.end, worker.by_end.size());
      if (candidate == kNobody || trace_.slices[candidate].end <= window.begin) continue;
      if (last == kNobody || trace_.slices[candidate].end > trace_.slices[last].end) {
        last = candidate;
      }
    }
    return last;
  }

  // The slice that ended last up to `time`, among the first `most`. `most` excludes a slice of no
  // duration from preceding itself.
  std::uint32_t before(const Worker& worker, Nanos time, std::size_t most) const {
    const auto end = worker.by_end.begin() + static_cast<std::ptrdiff_t>(most);
    const auto behind = std::partition_point(worker.by_end.begin(), end, [&](std::uint32_t slice) {
      return trace_.slices[slice].end <= time;
    });
    return behind == worker.by_end.begin() ? kNobody : *std::prev(behind);
  }

  void charge(std::size_t what, std::uint32_t worker, Nanos time, CriticalPath& path) {
    if (time <= 0) return;
    charges_[what] += time;
    ranks_[workers_[worker].label] += time;
    path.length += time;
  }
  void charge(Idle what, std::uint32_t worker, Nanos time, CriticalPath& path) {
    charge(trace_.strings.size() + static_cast<std::size_t>(what), worker, time, path);
  }

  // A wait for the host is the data loader's as long as the host was in it.
  void charge_host(Idle what, std::uint32_t worker, const Interval& gap, CriticalPath& path) {
    const std::array<Interval, 1> cut{gap};
    const Nanos loading = measure(intersect(loading_[workers_[worker].source], cut));
    charge(Idle::loader, worker, loading, path);
    charge(what, worker, gap.end - gap.begin - loading, path);
  }

  // Charges one link and returns its predecessor.
  std::uint32_t link(std::uint32_t at, const Interval& window, CriticalPath& path) {
    // A collective continues on the rank that came last.
    if (const auto last = waits_for_.find(at); last != waits_for_.end()) {
      const Nanos tail = trace_.slices[at].end - trace_.slices[last->second].end;
      if (last->second != at && tail >= 0) {
        charge(trace_.slices[at].name, worker_of_[at], tail, path);
      }
      at = last->second;
    }
    const Slice& slice = trace_.slices[at];
    const std::uint32_t worker = worker_of_[at];
    charge(slice.name, worker, slice.end - std::max(slice.begin, window.begin), path);
    if (slice.begin <= window.begin) return kNobody;
    const std::uint32_t previous = before(workers_[worker], slice.begin, place_[at]);
    const Nanos free_since =
        previous == kNobody ? window.begin : std::max(trace_.slices[previous].end, window.begin);
    const auto link = stage_links_.find(at);
    if (link != stage_links_.end() && trace_.slices[link->second].end > free_since) {
      charge(Idle::stage, worker, slice.begin - trace_.slices[link->second].end, path);
      return link->second;
    }
    if (const Launch* launch = trace_.launch_of(slice)) {
      const Nanos launched = std::clamp(launch->end, free_since, slice.begin);
      charge_host(Idle::host, worker, {free_since, launched}, path);
      charge(Idle::device, worker, slice.begin - launched, path);
    } else {
      charge_host(Idle::unknown, worker, {free_since, slice.begin}, path);
    }
    return previous == kNobody || trace_.slices[previous].end <= window.begin ? kNobody : previous;
  }

  const Trace& trace_;
  std::vector<Worker> workers_;
  std::vector<std::uint32_t> worker_of_;  // by slice
  std::vector<std::uint32_t> place_;      // by slice: index in its worker's by_end
  std::map<std::uint32_t, std::uint32_t> waits_for_;
  std::unordered_map<std::uint32_t, std::uint32_t> stage_links_;
  std::map<std::uint32_t, Intervals> loading_;  // by source
  // Of the current step, by name id; Idle follows after all names.
  std::unordered_map<std::size_t, Nanos> charges_;
  std::map<std::string, Nanos> ranks_;
};

}  // namespace

std::vector<PathShare> sorted_shares(const std::map<std::string, Nanos>& sums) {
  std::vector<PathShare> shares;
  shares.reserve(sums.size());
  for (const auto& [what, time] : sums) shares.push_back({what, time});
  std::ranges::stable_sort(shares, std::greater{}, &PathShare::time);
  return shares;
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
