#include "timeline/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/values.h"
#include "timeline/intervals.h"

namespace assay::timeline {
namespace {

bool all_forwards_first(const StageJobs& jobs) {
  const auto first_backward =
      std::ranges::find_if(jobs, [](const PipelineJob& job) { return job.pass != Pass::forward; });
  return std::none_of(first_backward, jobs.end(),
                      [](const PipelineJob& job) { return job.pass == Pass::forward; });
}

// After `warm_up` forwards, forwards and backwards alternate in 1F1B. Returns the number of the
// first forward that breaks this, or kNone.
std::int64_t first_early_forward(const StageJobs& jobs, std::size_t warm_up) {
  std::size_t forwards = 0;
  std::size_t backwards = 0;
  for (const PipelineJob& job : jobs) {
    if (job.pass == Pass::weight) continue;
    ++(job.pass == Pass::forward ? forwards : backwards);
    if (forwards > backwards + warm_up) return static_cast<std::int64_t>(forwards) - 1;
  }
  return kNone;
}

// Whether most parts of a forward lie between parts of a backward: only DualPipe overlaps the
// passes within a stage.
bool overlaps_passes(const StageJobs& jobs) {
  std::size_t turns = 0;
  std::size_t forwards = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].pass != Pass::forward) continue;
    ++forwards;
    const bool before = i > 0 && jobs[i - 1].pass != Pass::forward;
    const bool after = i + 1 < jobs.size() && jobs[i + 1].pass != Pass::forward;
    if (before && after) ++turns;
    // Also on different streams: the other pass began before this part ended.
    if (after && !before && jobs[i + 1].begin < jobs[i].end) ++turns;
  }
  return forwards > 2 && 2 * turns > forwards;
}

// The time during which both jobs run.
Nanos common_time(const PipelineJob& a, const PipelineJob& b) {
  if (a.pass != Pass::forward || b.pass != Pass::backward) return 0;
  return std::min(a.end, b.end) - std::max(a.begin, b.begin);
}

// Whether most forwards of a stage run at the same time as a backward.
bool runs_passes_at_once(const StageJobs& jobs) {
  std::size_t forwards = 0;
  std::size_t at_once = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].pass != Pass::forward) continue;
    ++forwards;
    constexpr std::size_t kNear = 4;
    const std::size_t end = std::min(jobs.size(), i + kNear + 1);
    for (std::size_t j = i > kNear ? i - kNear : 0; j < end; ++j) {
      if (2 * common_time(jobs[i], jobs[j]) <= jobs[i].end - jobs[i].begin) continue;
      ++at_once;
      break;
    }
  }
  return forwards > 2 && 2 * at_once > forwards;
}

// The begin of each micro batch's first forward.
std::map<std::int32_t, Nanos> first_forwards(const StageJobs& jobs) {
  std::map<std::int32_t, Nanos> first;
  for (const PipelineJob& job : jobs) {
    if (job.pass == Pass::forward) first.try_emplace(job.micro_batch, job.begin);
  }
  return first;
}

// Whether micro batches enter at both ends of the pipeline.
bool goes_both_ways(std::span<const StageJobs> stages) {
  const auto at_last = first_forwards(stages.back());
  bool down = false;
  bool up = false;
  for (const auto& [micro_batch, begin] : first_forwards(stages.front())) {
    const auto last = at_last.find(micro_batch);
    if (last != at_last.end()) (begin < last->second ? down : up) = true;
  }
  return down && up;
}

std::size_t count_distinct(std::span<const StageJobs> stages, std::int32_t PipelineJob::*field) {
  std::set<std::int32_t> values;
  for (const StageJobs& jobs : stages) {
    for (const PipelineJob& job : jobs) values.insert(job.*field);
  }
  return values.size();
}

// Whether a job is one half of a combined forward and backward: both have the same time.
bool is_paired(const PipelineJob& job, const StageJobs& jobs) {
  return std::ranges::any_of(jobs, [&](const PipelineJob& other) {
    return other.pass != job.pass && other.begin == job.begin && other.end == job.end;
  });
}

// Over paired jobs only, or over unpaired jobs only.
double mean_time(std::span<const StageJobs> stages, Pass pass, bool paired = false) {
  double sum = 0;
  std::size_t count = 0;
  for (const StageJobs& jobs : stages) {
    for (const PipelineJob& job : jobs) {
      if (job.pass != pass || is_paired(job, jobs) != paired) continue;
      sum += static_cast<double>(job.end - job.begin);
      ++count;
    }
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

void find_ideal(Schedule& schedule, std::span<const StageJobs> stages) {
  const double f = mean_time(stages, Pass::forward);
  const double b = mean_time(stages, Pass::backward);
  const double w = mean_time(stages, Pass::weight);
  const auto p = static_cast<double>(schedule.stages);
  const auto v = static_cast<double>(schedule.chunks);
  const double pair = mean_time(stages, Pass::forward, true);
  const double both = pair > 0 ? pair : f + b + w;  // a forward and a backward
  double bubble = 0;
  switch (schedule.kind) {
    case ScheduleKind::gpipe:
    case ScheduleKind::one_f_one_b:
    case ScheduleKind::interleaved:  // f and b are times of one chunk, 1/V of a stage
      bubble = (p - 1) * (f + b + w);
      break;
    case ScheduleKind::zero_bubble:
      bubble = schedule.chunks > 1 ? 0 : (p - 1) * (f + b - w);
      break;
    case ScheduleKind::dualpipe:
      // A device of DualPipeV holds two stages.
      bubble = ((schedule.folded ? p : p / 2) - 1) * (both + b - 2 * w);
      break;
    case ScheduleKind::none:
    case ScheduleKind::unknown:
      return;
  }
  bubble = std::max(bubble, 0.0);
  schedule.ideal_time = static_cast<double>(schedule.micro_batches) * v * both + bubble;
  if (schedule.ideal_time > 0) schedule.ideal_bubble = bubble / schedule.ideal_time;
}

// The mean share of the time from the first begin to the last end in which a stage runs no job.
double measured_share(std::span<const StageJobs> stages) {
  Span whole;
  Nanos busy = 0;
  for (const StageJobs& jobs : stages) {
    Intervals intervals;
    for (const PipelineJob& job : jobs) {
      intervals.push_back({job.begin, job.end});
      widen(whole, job);
    }
    busy += measure(unite(std::move(intervals)));
  }
  const auto available =
      static_cast<double>(whole.end - whole.begin) * static_cast<double>(stages.size());
  return available > 0 ? 1 - static_cast<double>(busy) / available : 0;
}

bool splits_backward(std::span<const StageJobs> stages) {
  return std::ranges::any_of(stages, [](const StageJobs& jobs) {
    return std::ranges::any_of(jobs,
                               [](const PipelineJob& job) { return job.pass == Pass::weight; });
  });
}

ScheduleKind kind_of(Schedule& schedule, std::span<const StageJobs> stages) {
  if (goes_both_ways(stages)) return ScheduleKind::dualpipe;
  if (std::ranges::all_of(stages, runs_passes_at_once)) {
    schedule.folded = true;
    return ScheduleKind::dualpipe;
  }
  if (splits_backward(stages)) return ScheduleKind::zero_bubble;
  if (schedule.chunks > 1) return ScheduleKind::interleaved;
  std::string early;
  for (std::size_t s = 0; s < stages.size() && early.empty(); ++s) {
    const std::int64_t forward = first_early_forward(stages[s], stages.size() - s);
    if (forward == kNone) continue;
    early = fmt::format(
        "stage {} runs its forward number {} (from 0) with more than the {} in flight that 1F1B "
        "has",
        s, forward, stages.size() - s);
  }
  if (early.empty()) return ScheduleKind::one_f_one_b;
  if (std::ranges::all_of(stages, all_forwards_first)) return ScheduleKind::gpipe;
  schedule.reason = early + ", and a forward follows a backward, unlike in GPipe";
  return ScheduleKind::unknown;
}

// A single stage shows only whether passes overlap.
Schedule of_one_stage(const StageJobs& jobs) {
  Schedule schedule;
  schedule.stages = 1;
  const std::array<StageJobs, 1> stage{jobs};
  if (!jobs.empty() && overlaps_passes(jobs)) {
    schedule.kind = ScheduleKind::dualpipe;
    schedule.micro_batches = count_distinct(stage, &PipelineJob::micro_batch);
    schedule.measured_bubble = measured_share(stage);
    schedule.reason =
        fmt::format("from one stage: parts of forwards and backwards alternate{}",
                    splits_backward(stage) ? ", gradients of weights are separate" : "");
    return schedule;
  }
  schedule.reason = jobs.empty() ? "no range names a forward or a backward (--job-names FILE)"
                                 : "one device: a schedule needs several stages";
  return schedule;
}

}  // namespace

std::string_view name(ScheduleKind kind) {
  constexpr std::array<std::string_view, 7> kNames{
      "none", "unknown", "GPipe", "1F1B", "interleaved 1F1B", "zero bubble", "DualPipe"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool parse_job_type(std::string_view type, PipelineJob& job) {
  constexpr std::array<std::pair<std::string_view, Pass>, 4> kTypes{{
      {"backward_w", Pass::weight},
      {"backward_b", Pass::backward},
      {"backward", Pass::backward},
      {"forward", Pass::forward},
  }};
  for (const auto& [prefix, pass] : kTypes) {
    if (!type.starts_with(prefix)) continue;
    std::string_view rest = type.substr(prefix.size());
    if (rest.starts_with('_')) rest.remove_prefix(1);
    job.pass = pass;
    job.chunk = 0;
    if (rest.empty()) return true;
    return read_number(rest, job.chunk);
  }
  return false;
}

Schedule recognise_schedule(std::span<const StageJobs> stages) {
  if (stages.size() == 1) return of_one_stage(stages[0]);
  Schedule schedule;
  schedule.stages = stages.size();
  const auto without = static_cast<std::size_t>(
      std::ranges::count_if(stages, [](const StageJobs& jobs) { return jobs.empty(); }));
  if (without > 0 || stages.empty()) {
    schedule.reason = without == stages.size()
                          ? "no range names a forward or a backward (--job-names FILE)"
                          : fmt::format("{} of {} devices have no jobs", without, stages.size());
    return schedule;
  }
  schedule.micro_batches = count_distinct(stages, &PipelineJob::micro_batch);
  schedule.chunks = std::max<std::size_t>(1, count_distinct(stages, &PipelineJob::chunk));
  schedule.kind = kind_of(schedule, stages);
  find_ideal(schedule, stages);
  schedule.measured_bubble = measured_share(stages);
  return schedule;
}

}  // namespace assay::timeline
