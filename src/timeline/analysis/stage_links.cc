#include "timeline/analysis/stage_links.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "timeline/analysis/slice_steps.h"

namespace assay::timeline {
namespace {

struct JobKey {
  std::size_t step = 0;
  std::size_t pipeline = 0;
  std::ptrdiff_t stage = 0;
  Pass pass = Pass::forward;
  std::int32_t micro_batch = 0;
  std::int32_t chunk = 0;
  friend auto operator<=>(const JobKey&, const JobKey&) = default;
};

// Where the micro batch of a job may come from: the neighbour in the usual direction, at the ends
// of the pipeline the chunk before on the other end, or the other neighbour (DualPipe).
std::array<JobKey, 2> origins_of(JobKey key, std::ptrdiff_t stages) {
  const std::ptrdiff_t back = key.pass == Pass::forward ? -1 : 1;
  JobKey usual = key;
  usual.stage += back;
  if (usual.stage < 0 || usual.stage >= stages) {
    usual.stage = back < 0 ? stages - 1 : 0;
    usual.chunk += static_cast<std::int32_t>(back);
  }
  key.stage -= back;
  return {usual, key};
}

constexpr Nanos kTolerance = 50'000;  // of the times of different clocks

// Other work, such as an optimizer, may wait for all stages: it begins when the last one ends.
void link_others(const Trace& trace, const std::vector<std::vector<std::size_t>>& pipelines,
                 const std::vector<std::vector<std::uint32_t>>& works,
                 const std::set<std::uint32_t>& within,
                 std::unordered_map<std::uint32_t, std::uint32_t>& links) {
  constexpr Nanos kPart = 10;  // of the wait
  for (const auto& pipeline : pipelines) {
    std::vector<std::pair<Nanos, std::uint32_t>> ends;
    for (const std::size_t device : pipeline) {
      for (const std::uint32_t work : works[device])
        ends.emplace_back(trace.slices[work].end, work);
    }
    std::ranges::sort(ends);
    for (const std::size_t device : pipeline) {
      for (std::size_t i = 1; i < works[device].size(); ++i) {
        const std::uint32_t work = works[device][i];
        const Nanos begin = trace.slices[work].begin;
        const Nanos wait = begin - trace.slices[works[device][i - 1]].end;
        const auto last = std::ranges::upper_bound(ends, std::pair(begin, kNoIndex));
        if (within.contains(work) || wait < kTolerance || last == ends.begin()) continue;
        const auto& [end, other] = *std::prev(last);
        if (kPart * (begin - end) < wait) links[work] = other;
      }
    }
  }
}

}  // namespace

std::unordered_map<std::uint32_t, std::uint32_t> stage_links(const Trace& trace,
                                                             const Analysis& analysis,
                                                             const CollectiveReport& collectives) {
  std::unordered_map<std::uint32_t, std::uint32_t> links;
  if (analysis.pipelines.empty() || analysis.pipelines.front().size() < 2) return links;
  const auto transfers = [](const CollectiveCall& call) {
    return call.name == "sendrecv" && call.parts.size() == 2;
  };
  if (std::ranges::any_of(collectives.calls, transfers)) return links;
  const std::vector<std::size_t>& device_of = analysis.device_of;
  std::vector<std::vector<std::uint32_t>> works(analysis.devices.size());  // by begin
  for (std::uint32_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    const Track& track = trace.tracks[slice.track];
    if (track.gpu && !track.jobs && slice.kind == Kind::compute) {
      works[device_of[slice.track]].push_back(i);
    }
  }
  std::map<std::size_t, std::pair<std::size_t, std::size_t>> places;  // pipeline, stage
  for (std::size_t i = 0; i < analysis.pipelines.size(); ++i) {
    for (std::size_t stage = 0; stage < analysis.pipelines[i].size(); ++stage) {
      places[analysis.pipelines[i][stage]] = {i, stage};
    }
  }
  const SliceSteps steps(trace, analysis);
  std::map<JobKey, std::pair<std::uint32_t, std::uint32_t>> jobs;  // first and last work
  std::set<std::uint32_t> within;                                  // such a job
  for (const Slice& slice : trace.slices) {
    PipelineJob job;
    if (!trace.tracks[slice.track].gpu || slice.micro_batch == kNone ||
        !parse_job_type(trace.strings.text(slice.category), job) || job.pass == Pass::weight) {
      continue;
    }
    const std::size_t device = device_of[slice.track];
    const auto place = places.find(device);
    if (place == places.end()) continue;
    const auto begin_of = [&](std::uint32_t at) { return trace.slices[at].begin; };
    const auto first = std::ranges::lower_bound(works[device], slice.begin, {}, begin_of);
    const auto behind = std::ranges::lower_bound(works[device], slice.end, {}, begin_of);
    if (first == behind) continue;
    const auto step = steps.of(trace.slices[*first], slice.begin);
    if (!step) continue;
    const JobKey key{
        *step,    place->second.first, static_cast<std::ptrdiff_t>(place->second.second),
        job.pass, slice.micro_batch,   job.chunk};
    jobs.try_emplace(key, *first, 0).first->second.second = *std::prev(behind);
    for (auto work = first; work != behind; ++work) within.insert(*work);
  }
  link_others(trace, analysis.pipelines, works, within, links);
  for (const auto& [key, work] : jobs) {
    const auto stages = static_cast<std::ptrdiff_t>(analysis.pipelines[key.pipeline].size());
    for (const JobKey& origin : origins_of(key, stages)) {
      const auto found = jobs.find(origin);
      if (found == jobs.end()) continue;
      const Slice& before = trace.slices[found->second.second];
      const Slice& slice = trace.slices[work.first];
      if (before.end > slice.begin + kTolerance || before.begin >= slice.begin) continue;
      links[work.first] = found->second.second;
      break;
    }
  }
  return links;
}

}  // namespace assay::timeline
