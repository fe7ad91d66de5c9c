#include "timeline/schedule.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>

#include "timeline/intervals.h"

namespace assay::timeline {
namespace {

bool all_forwards_first(const StageJobs& jobs) {
  const auto first_backward = std::find_if(
      jobs.begin(), jobs.end(), [](const PipelineJob& job) { return job.pass != Pass::forward; });
  return std::none_of(first_backward, jobs.end(),
                      [](const PipelineJob& job) { return job.pass == Pass::forward; });
}

// Forwards and backwards take turns once `warm_up` forwards have run.
bool takes_turns(const StageJobs& jobs, std::size_t warm_up) {
  std::size_t forwards = 0;
  std::size_t backwards = 0;
  for (const PipelineJob& job : jobs) {
    if (job.pass == Pass::weight) continue;
    ++(job.pass == Pass::forward ? forwards : backwards);
    if (forwards > backwards + warm_up) return false;
  }
  return true;
}

// When each micro batch first ran forward on a stage.
std::map<std::int32_t, Nanos> first_forwards(const StageJobs& jobs) {
  std::map<std::int32_t, Nanos> first;
  for (const PipelineJob& job : jobs) {
    if (job.pass == Pass::forward) first.try_emplace(job.micro_batch, job.begin);
  }
  return first;
}

// Micro batches that enter at the last stage as well as at the first.
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

double mean_time(std::span<const StageJobs> stages, Pass pass) {
  double sum = 0;
  std::size_t count = 0;
  for (const StageJobs& jobs : stages) {
    for (const PipelineJob& job : jobs) {
      if (job.pass != pass) continue;
      sum += static_cast<double>(job.end - job.begin);
      ++count;
    }
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

double ideal_share(const Schedule& schedule, std::span<const StageJobs> stages) {
  const double f = mean_time(stages, Pass::forward);
  const double b = mean_time(stages, Pass::backward);
  const double w = mean_time(stages, Pass::weight);
  const auto p = static_cast<double>(schedule.stages);
  const auto v = static_cast<double>(schedule.chunks);
  double bubble = 0;
  switch (schedule.kind) {
    case ScheduleKind::gpipe:
    case ScheduleKind::one_f_one_b:
    case ScheduleKind::interleaved:  // f and b are of one chunk, a stage's V-th part, already
      bubble = (p - 1) * (f + b + w);
      break;
    case ScheduleKind::zero_bubble:
      bubble = schedule.chunks > 1 ? 0 : (p - 1) * (f + b - w);
      break;
    case ScheduleKind::dualpipe:
      bubble = (p / 2 - 1) * (f + b + w + b - 3 * w);
      break;
    case ScheduleKind::none:
    case ScheduleKind::unknown:
      return 0;
  }
  bubble = std::max(bubble, 0.0);
  const double work = static_cast<double>(schedule.micro_batches) * v * (f + b + w);
  return work + bubble > 0 ? bubble / (work + bubble) : 0;
}

// The share of (pipeline's first begin to last end) in which a stage runs none of its jobs.
double measured_share(std::span<const StageJobs> stages) {
  Interval whole{std::numeric_limits<Nanos>::max(), std::numeric_limits<Nanos>::min()};
  Nanos busy = 0;
  for (const StageJobs& jobs : stages) {
    Intervals intervals;
    for (const PipelineJob& job : jobs) {
      intervals.push_back({job.begin, job.end});
      whole.begin = std::min(whole.begin, job.begin);
      whole.end = std::max(whole.end, job.end);
    }
    busy += measure(unite(std::move(intervals)));
  }
  const auto available =
      static_cast<double>(whole.end - whole.begin) * static_cast<double>(stages.size());
  return available > 0 ? 1 - static_cast<double>(busy) / available : 0;
}

ScheduleKind kind_of(const Schedule& schedule, std::span<const StageJobs> stages) {
  const bool split = std::any_of(stages.begin(), stages.end(), [](const StageJobs& jobs) {
    return std::any_of(jobs.begin(), jobs.end(),
                       [](const PipelineJob& job) { return job.pass == Pass::weight; });
  });
  if (goes_both_ways(stages)) return ScheduleKind::dualpipe;
  if (split) return ScheduleKind::zero_bubble;
  if (schedule.chunks > 1) return ScheduleKind::interleaved;
  bool turns = true;
  for (std::size_t s = 0; s < stages.size(); ++s)
    turns &= takes_turns(stages[s], stages.size() - s);
  if (turns) return ScheduleKind::one_f_one_b;
  return std::all_of(stages.begin(), stages.end(), all_forwards_first) ? ScheduleKind::gpipe
                                                                       : ScheduleKind::unknown;
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
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), job.chunk);
    return error == std::errc() && end == rest.data() + rest.size();
  }
  return false;
}

Schedule recognise_schedule(std::span<const StageJobs> stages) {
  Schedule schedule;
  schedule.stages = stages.size();
  if (stages.size() < 2 || std::any_of(stages.begin(), stages.end(),
                                       [](const StageJobs& jobs) { return jobs.empty(); })) {
    return schedule;
  }
  schedule.micro_batches = count_distinct(stages, &PipelineJob::micro_batch);
  schedule.chunks = std::max<std::size_t>(1, count_distinct(stages, &PipelineJob::chunk));
  schedule.kind = kind_of(schedule, stages);
  schedule.ideal_bubble = ideal_share(schedule, stages);
  schedule.measured_bubble = measured_share(stages);
  return schedule;
}

}  // namespace assay::timeline
