#include "timeline/analysis/idle.h"

#include <algorithm>
#include <array>

namespace assay::timeline {
namespace {

// The job that begins at the end of a gap, if any. Without launches, also the job that follows the
// communication which ends the gap: the receive of its input.
const PipelineJob* job_at(const Device& device, Nanos begin) {
  const auto it = std::ranges::lower_bound(device.jobs, begin, {}, &PipelineJob::begin);
  if (it == device.jobs.end() || it->begin == begin)
    return it == device.jobs.end() ? nullptr : &*it;
  if (device.launched || !device.starts.empty()) return nullptr;
  const auto computes = std::ranges::lower_bound(device.busy.compute, begin, {}, &Interval::begin);
  return computes != device.busy.compute.end() && computes->begin == it->begin ? &*it : nullptr;
}

// When the host launched the work that ends the gap; the gap's end for an unknown launch. A gap
// that a window cuts ends with the next work that has a launch.
Nanos launch_behind(const Device& device, const Interval& gap, bool cut) {
  const auto it =
      std::ranges::lower_bound(device.starts, Start{gap.end, std::numeric_limits<Nanos>::min()});
  if (it == device.starts.end() || (!cut && it->begin != gap.end)) return gap.end;
  return std::clamp(it->launched, gap.begin, gap.end);
}

// Splits the gaps of one device and step.
class Gaps {
 public:
  Gaps(const Device& device, std::size_t index, std::int64_t step, const Dependencies& dependencies,
       TimeShare& share, std::vector<Wait>* waits)
      : device_(device),
        index_(index),
        step_(step),
        dependencies_(dependencies),
        share_(share),
        waits_(waits) {}

  void explain(const Interval& gap, const Span& busy) {
    const bool before = gap.end <= busy.begin;
    const bool behind = gap.begin >= busy.end;
    const bool piped = dependencies_.in_pipeline(index_);
    if (piped && !device_.launched && before) {
      return charge(IdleCause::fill, gap.begin, gap.end);
    }
    Interval rest = gap;
    if (behind) {
      rest.begin = until(device_.launched ? dependencies_.end_of_work(index_, step_)
                                          : dependencies_.end_within(index_, gap),
                         gap);
      charge(IdleCause::drain, gap.begin, rest.begin);
    } else if (const PipelineJob* job = job_at(device_, gap.end)) {
      rest.begin = until(dependencies_.ready(index_, *job), gap);
      charge(before ? IdleCause::fill : IdleCause::dependency, gap.begin, rest.begin);
    } else if (piped && !device_.launched) {  // such as an optimizer
      rest.begin = until(dependencies_.end_within(index_, gap), gap);
      charge(IdleCause::dependency, gap.begin, rest.begin);
    }
    of_host(rest, behind);
  }

 private:
  void charge(IdleCause cause, Nanos begin, Nanos end) {
    const auto lane = static_cast<std::size_t>(cause);
    share_.idle_by[lane] += end - begin;
    note({{begin, end}}, lane);
  }
  void note(const Intervals& times, std::size_t lane) {
    if (waits_ == nullptr) return;
    for (const Interval& time : times) {
      if (time.begin < time.end) waits_->push_back({time.begin, time.end, lane});
    }
  }
  static Nanos until(std::optional<Nanos> time, const Interval& gap) {
    return time ? std::clamp(*time, gap.begin, gap.end) : gap.begin;
  }
  void of_host(const Interval& gap, bool cut) {
    const Nanos launched = std::max(gap.begin, launch_behind(device_, gap, cut));
    const std::array<Interval, 1> late{Interval{gap.begin, launched}};
    const Intervals full = intersect(device_.queue_full, late);
    const Intervals loads = intersect(device_.loading, late);
    for (const Interval& time : full) charge(IdleCause::queue, time.begin, time.end);
    const Nanos blocked = measure(full);
    share_.idle_by[static_cast<std::size_t>(IdleCause::host)] += launched - gap.begin - blocked;
    if (waits_ != nullptr) {
      note(loads, kLoadingLane);
      note(subtract(subtract(late, full), loads), static_cast<std::size_t>(IdleCause::host));
    }
    charge(IdleCause::device, launched, gap.end);
    share_.loading += measure(loads);
  }

  const Device& device_;
  std::size_t index_;
  std::int64_t step_;
  const Dependencies& dependencies_;
  TimeShare& share_;
  std::vector<Wait>* waits_;
};

}  // namespace

Dependencies::Dependencies(const std::vector<Device>& devices,
                           const std::vector<std::vector<std::size_t>>& pipelines)
    : devices_(devices), pipelines_(pipelines) {
  for (std::size_t i = 0; i < pipelines.size(); ++i) {
    for (std::size_t stage = 0; stage < pipelines[i].size(); ++stage) {
      if (pipelines[i].size() > 1) pipeline_of_[pipelines[i][stage]] = i;
      if (stage == 0) continue;
      before_[pipelines[i][stage]] = pipelines[i][stage - 1];
      behind_[pipelines[i][stage - 1]] = pipelines[i][stage];
    }
  }
}

std::optional<Nanos> Dependencies::ready(std::size_t device, const PipelineJob& job) const {
  if (job.pass == Pass::weight) return std::nullopt;
  const auto& neighbours = job.pass == Pass::forward ? before_ : behind_;
  const auto neighbour = neighbours.find(device);
  if (neighbour == neighbours.end()) return std::nullopt;
  const StageJobs& source = devices_[neighbour->second].jobs;
  // The last such job that began before this one.
  auto it = std::ranges::lower_bound(source, job.begin, {}, &PipelineJob::begin);
  while (it != source.begin()) {
    --it;
    if (it->pass == job.pass && it->micro_batch == job.micro_batch) return it->end;
    // Jobs further back belong to another step.
    if (std::distance(it, source.end()) > kMaxLook && job.begin - it->begin > kMaxAge) break;
  }
  return std::nullopt;
}

std::optional<Nanos> Dependencies::end_of_work(std::size_t device, std::int64_t step) const {
  const auto pipeline = pipeline_of_.find(device);
  if (pipeline == pipeline_of_.end()) return std::nullopt;
  Nanos end = std::numeric_limits<Nanos>::min();
  for (const std::size_t stage : pipelines_[pipeline->second]) {
    end = std::max(end, devices_[stage].work_of(step).span().end);
  }
  return end;
}

std::optional<Nanos> Dependencies::end_within(std::size_t device, const Interval& gap) const {
  const auto pipeline = pipeline_of_.find(device);
  if (pipeline == pipeline_of_.end()) return std::nullopt;
  Nanos end = gap.begin;
  for (const std::size_t stage : pipelines_[pipeline->second]) {
    const Intervals& any = devices_[stage].any;
    const auto after = std::ranges::upper_bound(any, gap.end, {}, &Interval::end);
    if (after != any.begin()) end = std::max(end, std::prev(after)->end);
  }
  return end;
}

TimeShare share_of(const Device& device, std::size_t index, std::int64_t step, const Busy& mine,
                   const Interval& window, const Dependencies& dependencies,
                   std::vector<Wait>* waits) {
  const std::array<Interval, 1> cut{window};
  TimeShare share;
  share.span = window.end - window.begin;
  share.compute = measure(mine.compute);
  share.communication = measure(mine.communication);
  share.hidden_communication = measure(intersect(mine.communication, mine.compute));
  Intervals busy = mine.compute;
  busy.insert(busy.end(), mine.communication.begin(), mine.communication.end());
  busy = unite(std::move(busy));
  share.memory = measure(subtract(mine.memory, busy));
  share.copying = measure(subtract(mine.memory, mine.compute));
  const Intervals any = intersect(device.any, cut);
  const Intervals gaps = subtract(cut, any);
  share.idle = measure(gaps);
  share.other_steps = measure(any) - measure(intersect(mine.all(), cut));
  Span span = mine.span();
  if (span.begin > span.end) span = {window.begin, window.begin};  // no work: nothing to drain
  Gaps explained(device, index, step, dependencies, share, waits);
  for (const Interval& gap : gaps) explained.explain(gap, span);
  return share;
}

std::vector<Wait> host_waits(const Device& device, std::size_t index,
                             const Dependencies& dependencies) {
  std::vector<Wait> result;
  if (device.any.empty() || device.marks.empty()) return result;
  TimeShare share;
  std::map<Nanos, std::int64_t> last_work;  // step, by the end of its work
  for (const auto& [step, busy] : device.by_step) last_work[busy.span().end] = step;
  const Span all{device.any.front().begin, device.any.back().end};
  const std::array<Interval, 1> cut{Interval{
      device.unrecorded > 0 ? device.carried : std::min(device.marks.front().begin, all.begin),
      all.end}};
  std::vector<Wait> waits;  // in one gap
  for (const Interval& gap : subtract(cut, device.any)) {
    const auto step = last_work.find(gap.begin);
    const bool drains = step != last_work.end();
    Gaps(device, index, drains ? step->second : kNone, dependencies, share, &waits)
        .explain(gap, drains ? Span{all.begin, gap.begin} : all);
    std::ranges::copy_if(waits, std::back_inserter(result), [](const Wait& wait) {
      return wait.lane == static_cast<std::size_t>(IdleCause::host) || wait.lane == kLoadingLane;
    });
    waits.clear();
  }
  return result;
}

}  // namespace assay::timeline
