#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "timeline/analysis/job_names.h"
#include "timeline/importers/gpu_categories.h"
#include "timeline/intervals.h"

namespace assay::timeline {
namespace {

std::string_view category_of_pass(Pass pass) {
  constexpr std::array<std::string_view, 3> kNames{"forward", "backward", "backward_w"};
  return kNames[static_cast<std::size_t>(pass)];
}

struct Range {
  Nanos begin = 0;
  Nanos end = 0;
  std::vector<JobName> jobs;  // two for an overlapped forward and backward
  StringId name = 0;
  std::int32_t count = 0;  // position among the ranges of its name in the step
};

// By begin, outer ones first.
using ThreadRanges = std::vector<Range>;

class JobFinder {
 public:
  JobFinder(Trace& trace, const JobNames& names) : trace_(trace) {
    for (const Slice& slice : trace.slices) {
      const Track& track = trace.tracks[slice.track];
      if (track.gpu || track.jobs || slice.end <= slice.begin) continue;
      const std::string_view category = trace.strings.text(slice.category);
      if (profiler_event_kind(category) != EventKind::annotation) continue;
      add_range(slice, names);
    }
    for (const RankStep& mark : trace.rank_steps) steps_[mark.source].push_back(mark.step.begin);
    for (auto& [source, begins] : steps_) std::ranges::sort(begins);
    for (auto& [source, threads] : ranges_) count_names(source, threads);
  }

  void add_jobs() {
    if (ranges_.empty()) return;
    gather();
    std::vector<Slice> jobs;
    for (const auto& [key, spans] : spans_) {
      const auto& [device, range] = key;
      const Span& span = spans[0].begin < spans[0].end ? spans[0] : spans[1];
      for (const JobName& name : range->jobs) {
        Slice job;
        job.begin = span.begin;
        job.end = span.end;
        job.name = range->name;
        job.micro_batch = name.micro_batch != kNone ? name.micro_batch : range->count;
        job.category = trace_.strings.intern_valid(category_of(name, device.first));
        job.kind = Kind::compute;
        job.track = track_of(device);
        jobs.push_back(job);
      }
    }
    if (jobs.empty()) return;
    trace_.slices.insert(trace_.slices.end(), jobs.begin(), jobs.end());
    trace_.sort();
  }

 private:
  using Device = std::pair<std::uint32_t, std::int32_t>;  // source, number

  void add_range(const Slice& slice, const JobNames& names) {
    const auto [known, is_new] = parsed_.try_emplace(slice.name);
    if (is_new) known->second = names.parse(trace_.strings.text(slice.name));
    if (known->second.empty()) return;
    ranges_[trace_.tracks[slice.track].source][slice.track].push_back(
        {slice.begin, slice.end, known->second, slice.name, 0});
  }

  // A job without a micro batch in its name gets its position among the jobs of that name.
  void count_names(std::uint32_t source, std::map<std::uint32_t, ThreadRanges>& threads) {
    for (auto& [thread, ranges] : threads) {
      std::map<std::pair<StringId, std::ptrdiff_t>, std::int32_t> counts;
      const std::vector<Nanos>& begins = steps_[source];
      for (Range& range : ranges) {
        const auto step = std::ranges::upper_bound(begins, range.begin);
        range.count = counts[{range.name, step - begins.begin()}]++;
        for (const JobName& job : range.jobs) {
          if (job.stage != kNone) stages_[source].insert(job.stage);
          if (job.pass == Pass::weight) split_.insert(source);
        }
      }
    }
  }

  const Range* range_of(const Launch& launch) const {
    const std::uint32_t source = trace_.tracks[launch.track].source;
    const auto threads = ranges_.find(source);
    if (threads == ranges_.end()) return nullptr;
    if (const auto own = threads->second.find(launch.track); own != threads->second.end()) {
      return innermost(own->second, launch.begin);
    }
    // A thread without named ranges works for one with them, as autograd's thread for the caller of
    // backward.
    for (const auto& [thread, ranges] : threads->second) {
      if (const Range* range = innermost(ranges, launch.begin)) return range;
    }
    return nullptr;
  }

  void gather() {
    for (const Slice& slice : trace_.slices) {
      const Track& track = trace_.tracks[slice.track];
      const Launch* const launch = trace_.launch_of(slice);
      const Range* const range = track.gpu && launch != nullptr ? range_of(*launch) : nullptr;
      if (range == nullptr) continue;
      examples_.try_emplace({track.source, track.device}, slice.track);
      widen(spans_[{{track.source, track.device}, range}][slice.kind == Kind::communication],
            slice);
    }
  }

  std::string category_of(const JobName& job, std::uint32_t source) const {
    std::string category(category_of_pass(job.pass));
    if (job.pass == Pass::backward && (job.split || split_.contains(source))) category += "_b";
    // Chunks are numbered in the order of the pipeline stages that the device runs.
    const auto stages = stages_.find(source);
    if (job.stage == kNone || stages == stages_.end()) return category;
    const auto chunk = std::distance(stages->second.begin(), stages->second.find(job.stage));
    return chunk == 0 ? category : fmt::format("{}{}", category, chunk);
  }

  std::uint32_t track_of(const Device& device) {
    const auto [entry, is_new] = tracks_.try_emplace(device, 0);
    if (!is_new) return entry->second;
    Track track = trace_.tracks[examples_.at(device)];
    track.jobs = true;
    track.chrome_tid.clear();
    const std::string gpu =
        track.device == kNone ? "jobs" : fmt::format("GPU {} · jobs", track.device);
    track.label = track.rank == kNone ? gpu : fmt::format("rank {} · {}", track.rank, gpu);
    entry->second = static_cast<std::uint32_t>(trace_.tracks.size());
    trace_.tracks.push_back(std::move(track));
    return entry->second;
  }

  Trace& trace_;
  std::map<StringId, std::vector<JobName>> parsed_;
  std::map<std::uint32_t, std::map<std::uint32_t, ThreadRanges>> ranges_;  // by source, by track
  std::map<std::uint32_t, std::vector<Nanos>> steps_;                      // begins
  std::map<std::uint32_t, std::set<std::int32_t>> stages_;
  std::set<std::uint32_t> split_;  // sources with separate jobs for the gradients of weights
  // Of work, and of communication, which may wait for the job's input. Tracks come in the order of
  // devices.
  std::map<std::pair<Device, const Range*>, std::array<Span, 2>> spans_;
  std::map<Device, std::uint32_t> examples_;  // some track of the device
  std::map<Device, std::uint32_t> tracks_;
};

// A recording has jobs of all ranges. Those with known names and without a micro batch ("forward",
// "backward_step") get the pass as category and their position in the step as micro batch.
void number_jobs(Trace& trace, const JobNames& names) {
  std::vector<Nanos> begins;
  begins.reserve(trace.steps.size());
  for (const Step& step : trace.steps) begins.push_back(step.begin);
  std::ranges::sort(begins);
  std::map<std::tuple<std::uint32_t, StringId, std::ptrdiff_t>, std::int32_t> counts;
  for (Slice& slice : trace.slices) {
    if (!trace.tracks[slice.track].jobs || slice.micro_batch != kNone) continue;
    const auto parsed = names.parse(trace.strings.text(slice.name));
    if (parsed.size() != 1) continue;
    const auto step = std::ranges::upper_bound(begins, slice.begin) - begins.begin();
    const std::int32_t count = counts[{slice.track, slice.name, step}]++;
    slice.micro_batch = parsed[0].micro_batch != kNone ? parsed[0].micro_batch : count;
    slice.category = trace.strings.intern_valid(category_of_pass(parsed[0].pass));
  }
}

}  // namespace

void add_annotated_jobs(Trace& trace, const JobNames& names) {
  // A recording or a merge already has jobs.
  if (std::ranges::any_of(trace.tracks, &Track::jobs)) return number_jobs(trace, names);
  JobFinder(trace, names).add_jobs();
}

}  // namespace assay::timeline
