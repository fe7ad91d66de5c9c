#include "timeline/analysis/quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "timeline/names.h"

namespace assay::timeline {
namespace {

// Calls that start kernels: cudaLaunchKernel, cuLaunchKernelEx, hipExtModuleLaunchKernel,
// cudaGraphLaunch.
bool launches_kernels(std::string_view call) {
  return has_any(call, {"LaunchKernel", "LaunchCooperativeKernel"}) ||
         call.ends_with("GraphLaunch");
}

// By track, when a thread captured a graph: then launches start nothing.
std::map<std::uint32_t, Intervals> captures_of(const Trace& trace) {
  std::map<std::uint32_t, Intervals> captures;
  for (const Launch& launch : trace.launches) {  // of a thread in order
    const std::string_view call = trace.strings.text(launch.name);
    if (has(call, "StreamBeginCapture")) {
      captures[launch.track].push_back({launch.begin, std::numeric_limits<Nanos>::max()});
    } else if (has(call, "StreamEndCapture")) {
      Intervals& mine = captures[launch.track];
      if (!mine.empty()) mine.back().end = launch.end;
    }
  }
  return captures;
}

void find_lost(const Trace& trace, Quality& quality) {
  std::vector<bool> seen(trace.launches.size());
  for (const Detail& detail : trace.details) {
    if (detail.launch != kNoIndex) seen[detail.launch] = true;
  }
  const auto captures = captures_of(trace);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const Launch& launch = trace.launches[i];
    if (seen[i] || !launches_kernels(trace.strings.text(launch.name))) continue;
    const auto mine = captures.find(launch.track);
    if (mine != captures.end() && innermost(mine->second, launch.begin) != nullptr) continue;
    ++quality.lost_launches;
    quality.lost_time += launch.end - launch.begin;
  }
}

void find_hollow(const Analysis& analysis, Quality& quality) {
  for (const DeviceReport& device : analysis.devices) {
    quality.unrecorded += device.unrecorded > 0 ? 1 : 0;
    quality.unrecorded_time += device.unrecorded;
    for (const TimeShare& step : device.steps) {
      if (step.span <= 0 || step.compute + step.communication + step.memory > 0) continue;
      ++quality.hollow_steps;
      quality.hollow_time += step.span;
    }
  }
}

// Times of old profilers are whole microseconds, so less than two are no overlap.
void find_overlaps(const Trace& trace, Quality& quality) {
  constexpr Nanos kRounding = 2000;
  std::vector<Nanos> ends(trace.tracks.size(), std::numeric_limits<Nanos>::min());
  for (const Slice& slice : trace.slices) {
    const Track& track = trace.tracks[slice.track];
    if (!track.gpu || track.jobs || slice.micro_batch != kNone || slice.job != kNone ||
        (slice.kind != Kind::compute && slice.kind != Kind::communication)) {
      continue;
    }
    Nanos& end = ends[slice.track];
    if (end != std::numeric_limits<Nanos>::min() && slice.begin + kRounding < end) {
      ++quality.overlapping;
      quality.overlapping_time += std::min(end, slice.end) - slice.begin;
    }
    end = std::max(end, slice.end);
  }
}

// Two ranks whose GPU work does not overlap in time: other runs, or clocks of other hosts.
void find_apart(const Trace& trace, Quality& quality) {
  std::vector<Span> spans(trace.sources.size());
  for (const Slice& slice : trace.slices) {
    const Track& track = trace.tracks[slice.track];
    if (track.gpu && track.source < spans.size()) widen(spans[track.source], slice);
  }
  const Source* first = nullptr;
  const Source* last = nullptr;
  Span between;  // the earliest end, the latest begin
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].begin > spans[i].end || trace.sources[i].rank == kNone) continue;
    if (spans[i].end < between.begin) {
      between.begin = spans[i].end;
      first = &trace.sources[i];
    }
    if (spans[i].begin > between.end) {
      between.end = spans[i].begin;
      last = &trace.sources[i];
    }
  }
  if (first == nullptr || first == last || between.begin >= between.end) return;
  quality.apart =
      fmt::format("rank {} ends {:.3f} ms before rank {} begins: their times do not overlap",
                  first->rank, millis(between.end - between.begin), last->rank);
}

}  // namespace

std::vector<std::string> Quality::lines() const {
  std::vector<std::string> lines;
  const auto add = [&](std::uint64_t count, Nanos time, std::string_view what) {
    if (count > 0) lines.push_back(fmt::format("{} {} ({:.3f} ms)", count, what, millis(time)));
  };
  add(lost_launches, lost_time, "launches have no kernel: the profiler lost them");
  add(hollow_steps, hollow_time, "steps of a device have no GPU work");
  add(unrecorded, unrecorded_time,
      "devices still did earlier work, which is not recorded, when their first step was launched");
  add(overlapping, overlapping_time, "kernels begin before the last one of their stream ended");
  if (!apart.empty()) lines.push_back(apart);
  constexpr std::size_t kMaxFiles = 10;
  for (std::size_t i = 0; i < damaged.size() && i < kMaxFiles; ++i) lines.push_back(damaged[i]);
  if (damaged.size() > kMaxFiles) {
    lines.push_back(fmt::format("{} more files are damaged", damaged.size() - kMaxFiles));
  }
  return lines;
}

Quality quality_of(const Trace& trace, const Analysis& analysis) {
  Quality quality;
  find_lost(trace, quality);
  find_hollow(analysis, quality);
  find_overlaps(trace, quality);
  if (trace.one_clock) find_apart(trace, quality);
  for (const FileReport& file : trace.files) {
    if (file.dropped() == 0) continue;
    quality.dropped += file.dropped();
    quality.damaged.push_back(fmt::format("{}: {} records are lost{}{}", file.path, file.dropped(),
                                          file.notes.empty() ? "" : ": ",
                                          file.notes.empty() ? "" : file.notes.front()));
  }
  return quality;
}

}  // namespace assay::timeline
