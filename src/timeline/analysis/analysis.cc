#include "timeline/analysis/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "timeline/analysis/devices.h"
#include "timeline/analysis/pipelines.h"
#include "timeline/intervals.h"

namespace assay::timeline {
namespace {

// Finds the end of the job that produced a job's input: the same micro batch on the previous stage
// for a forward, on the next stage for a backward.
class Dependencies {
 public:
  Dependencies(const std::vector<Device>& devices,
               const std::vector<std::vector<std::size_t>>& pipelines)
      : devices_(devices) {
    for (const auto& pipeline : pipelines) {
      for (std::size_t stage = 1; stage < pipeline.size(); ++stage) {
        before_[pipeline[stage]] = pipeline[stage - 1];
        behind_[pipeline[stage - 1]] = pipeline[stage];
      }
    }
  }

  std::optional<Nanos> ready(std::size_t device, const PipelineJob& job) const {
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

 private:
  static constexpr std::ptrdiff_t kMaxLook = 10'000;
  static constexpr Nanos kMaxAge = 60'000'000'000;
  const std::vector<Device>& devices_;
  std::map<std::size_t, std::size_t> before_, behind_;  // the neighbouring stage, by device
};

// The job that begins at the end of a gap, if any.
const PipelineJob* job_at(const StageJobs& jobs, Nanos begin) {
  const auto it = std::ranges::lower_bound(jobs, begin, {}, &PipelineJob::begin);
  return it != jobs.end() && it->begin == begin ? &*it : nullptr;
}

// The part of a gap before the launch of the work that ends it; the whole gap for an unknown
// launch.
Nanos late_launch(const Device& device, const Interval& gap) {
  const auto it =
      std::ranges::lower_bound(device.starts, Start{gap.end, std::numeric_limits<Nanos>::min()});
  if (it == device.starts.end() || it->begin != gap.end) return gap.end - gap.begin;
  return std::clamp(it->launched, gap.begin, gap.end) - gap.begin;
}

void explain_gap(const Device& device, std::size_t stage, const Interval& gap,
                 const Interval& busy_span, const Dependencies& dependencies, TimeShare& share) {
  const auto charge = [&](IdleCause cause, Nanos time) {
    share.idle_by[static_cast<std::size_t>(cause)] += time;
  };
  const Nanos length = gap.end - gap.begin;
  if (gap.begin >= busy_span.end) return charge(IdleCause::drain, length);
  if (gap.end <= busy_span.begin) return charge(IdleCause::fill, length);
  Nanos dependent = 0;
  if (const PipelineJob* job = job_at(device.jobs, gap.end)) {
    const auto ready = dependencies.ready(stage, *job);
    if (ready) dependent = std::clamp(*ready, gap.begin, gap.end) - gap.begin;
  }
  charge(IdleCause::dependency, dependent);
  const std::array<Interval, 1> late{
      Interval{gap.begin + dependent, gap.begin + std::max(dependent, late_launch(device, gap))}};
  const Nanos blocked = measure(intersect(device.queue_full, late));
  charge(IdleCause::queue, blocked);
  charge(IdleCause::host, late[0].end - late[0].begin - blocked);
  charge(IdleCause::device, gap.end - late[0].end);
}

// `mine` is the work of the step; `any` is all work of the device.
TimeShare share_of(const Device& device, std::size_t stage, const Busy& mine,
                   const Interval& window, const Dependencies& dependencies) {
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
  const Intervals own = mine.all();
  const Intervals any = intersect(device.any, cut);
  const Intervals gaps = subtract(cut, any);
  share.idle = measure(gaps);
  share.other_steps = measure(any) - measure(intersect(own, cut));
  const Interval busy_span =
      own.empty() ? Interval{window.end, window.end} : Interval{own.front().begin, own.back().end};
  for (const Interval& gap : gaps) {
    if (own.empty()) {
      share.idle_by[static_cast<std::size_t>(IdleCause::drain)] += gap.end - gap.begin;
    } else {
      explain_gap(device, stage, gap, busy_span, dependencies, share);
    }
  }
  return share;
}

// The windows of steps. Windows from launches are shared by all devices with comparable clocks.
class Windows {
 public:
  Windows(const Trace& trace, const std::vector<Device>& devices) : one_clock_(trace.one_clock) {
    for (const Device& device : devices) {
      if (!device.launched) continue;
      for (const auto& [step, busy] : device.by_step) {
        const Intervals all = busy.all();
        if (step == kNone || all.empty()) continue;
        widen(windows_[clock(device)][step], Span{all.front().begin, all.back().end});
      }
    }
    for (auto& [name, windows] : windows_) {
      for (auto it = windows.begin(); it != windows.end(); ++it) {
        const auto next = std::next(it);
        if (next == windows.end() || next->first != it->first + 1) continue;
        it->second.end = std::max(it->second.end, next->second.begin);
      }
    }
  }

  // Empty if the device's clock has no such step.
  Interval of(const Device& device, const Step& step) const {
    if (!device.launched) return {step.begin, step.end};
    const auto windows = windows_.find(clock(device));
    if (windows == windows_.end()) return {};
    const auto window = windows->second.find(step.number);
    if (window == windows->second.end()) return {};
    return {window->second.begin, window->second.end};
  }

  Interval of_all(const std::vector<Device>& devices, const Step& step) const {
    Span all;
    for (const Device& device : devices) {
      const Interval window = of(device, step);
      if (window.begin < window.end) widen(all, window);
    }
    return all.begin < all.end ? Interval{all.begin, all.end} : Interval{};
  }

 private:
  std::string clock(const Device& device) const { return one_clock_ ? "" : device.machine; }

  bool one_clock_;
  std::map<std::string, std::map<std::int64_t, Span>> windows_;
};

StageJobs jobs_within(const Device& device, const Interval& window) {
  const auto begin = std::ranges::lower_bound(device.jobs, window.begin, {}, &PipelineJob::begin);
  const auto end = std::partition_point(
      begin, device.jobs.end(), [&](const PipelineJob& job) { return job.begin < window.end; });
  return {begin, end};
}

// Uses the first step in which every device with jobs has a job.
Pipelines pipelines_of(const Trace& trace, const std::vector<Device>& devices,
                       const Windows& windows, const std::vector<Step>& steps) {
  const auto groups = pipeline_groups(trace.sources);
  std::vector<StageDevice> stages;
  for (const Step& step : steps) {
    stages.clear();
    bool complete = true;
    for (const Device& device : devices) {
      stages.push_back({device.rank, jobs_within(device, windows.of(device, step))});
      complete &= !stages.back().jobs.empty() || device.jobs.empty();
    }
    if (complete) break;
  }
  Pipelines pipelines = find_pipelines(stages, groups, trace.sources.empty());
  if (!pipelines.reason.empty() && !trace.one_clock) {
    pipelines.reason += "; the clocks of the machines are not related";
  }
  return pipelines;
}

Schedule schedule_of(const std::vector<Device>& devices, const Pipelines& pipelines,
                     const Windows& windows, const Step& step) {
  Schedule all;
  all.reason = pipelines.reason;
  double measured = 0;
  double ideal = 0;
  for (std::size_t i = 0; i < pipelines.devices.size(); ++i) {
    std::vector<StageJobs> stages;
    for (const std::size_t device : pipelines.devices[i]) {
      stages.push_back(jobs_within(devices[device], windows.of(devices[device], step)));
    }
    const Schedule one = recognise_schedule(stages);
    measured += one.measured_bubble;
    ideal += one.ideal_bubble;
    if (i == 0) {
      all = one;
    } else if (all.kind != one.kind) {
      all.reason = fmt::format("the pipelines follow different schedules: {} and {}",
                               name(all.kind), name(one.kind));
      all.kind = ScheduleKind::unknown;
    }
  }
  if (pipelines.devices.empty()) return all;
  all.pipelines = pipelines.devices.size();
  all.measured_bubble = measured / static_cast<double>(all.pipelines);
  all.ideal_bubble = ideal / static_cast<double>(all.pipelines);
  return all;
}

TimeShare step_share(const Device& device, std::size_t stage, const Step& step,
                     const Interval& window, const Dependencies& dependencies) {
  if (window.end <= window.begin) return {};
  if (!device.launched) {
    const std::array<Interval, 1> cut{window};
    return share_of(device, stage, device.busy.within(cut), window, dependencies);
  }
  const auto mine = device.by_step.find(step.number);
  return share_of(device, stage, mine == device.by_step.end() ? Busy{} : mine->second, window,
                  dependencies);
}

DeviceReport report_of(const Device& device, std::size_t stage, const std::vector<Step>& steps,
                       const Windows& windows, const Dependencies& dependencies) {
  DeviceReport report;
  static_cast<DeviceIdentity&>(report) = device;
  report.counts = device.counts;
  if (!device.any.empty()) {
    report.whole = share_of(device, stage, device.busy,
                            {device.any.front().begin, device.any.back().end}, dependencies);
  }
  for (const Step& step : steps) {
    report.steps.push_back(step_share(device, stage, step, windows.of(device, step), dependencies));
    report.total += report.steps.back();
  }
  if (!device.launched) return report;
  report.outside_counts = device.outside;
  const auto outside = device.by_step.find(kNone);
  if (outside == device.by_step.end()) return report;
  const Intervals all = outside->second.all();
  if (all.empty()) return report;
  report.outside =
      share_of(device, stage, outside->second, {all.front().begin, all.back().end}, dependencies);
  report.outside.idle = report.outside.other_steps = report.outside.span = 0;
  report.outside.idle_by = {};
  return report;
}

void rank(Analysis& analysis) {
  std::map<std::string, std::pair<Nanos, int>> machines;
  for (std::size_t i = 0; i < analysis.devices.size(); ++i) {
    const DeviceReport& device = analysis.devices[i];
    if (device.total.compute > analysis.devices[analysis.critical_stage].total.compute) {
      analysis.critical_stage = i;
    }
    auto& [sum, count] = machines[device.machine];
    sum += device.total.compute;
    ++count;
  }
  if (machines.size() < 2) return;
  const auto slowest = std::ranges::max_element(machines, [](auto& a, auto& b) {
    return a.second.first / a.second.second < b.second.first / b.second.second;
  });
  analysis.slowest_machine = slowest->first;
}

std::vector<Step> steps_of(const Trace& trace) {
  std::vector<Step> steps;
  for (const Step& step : trace.steps) {
    if (step.begin < step.end) steps.push_back(step);
  }
  if (!steps.empty()) return steps;
  Step whole;
  for (const Slice& slice : trace.slices) {
    if (trace.tracks[slice.track].gpu && is_gpu_work(slice.kind)) widen(whole, slice);
  }
  if (whole.begin < whole.end) steps.push_back(whole);
  return steps;
}

}  // namespace

std::string_view name(IdleCause cause) {
  constexpr std::array<std::string_view, kIdleCauses> kNames{"fill", "drain",  "dependency",
                                                             "host", "device", "queue"};
  return kNames[static_cast<std::size_t>(cause)];
}

TimeShare& TimeShare::operator+=(const TimeShare& other) {
  span += other.span;
  compute += other.compute;
  communication += other.communication;
  hidden_communication += other.hidden_communication;
  memory += other.memory;
  idle += other.idle;
  other_steps += other.other_steps;
  for (std::size_t i = 0; i < kIdleCauses; ++i) idle_by[i] += other.idle_by[i];
  return *this;
}

Analysis analyse(const Trace& trace) {
  Analysis analysis;
  analysis.steps = steps_of(trace);
  analysis.notes = trace.notes;
  const std::vector<Device> devices = devices_of(trace);
  const Windows windows(trace, devices);
  const Pipelines pipelines = pipelines_of(trace, devices, windows, analysis.steps);
  for (const Step& step : analysis.steps) {
    analysis.schedules.push_back(schedule_of(devices, pipelines, windows, step));
    analysis.windows.push_back(windows.of_all(devices, step));
  }
  // Only stages of a pipeline depend on each other's jobs.
  if (std::ranges::any_of(analysis.schedules, [](const Schedule& schedule) {
        return schedule.kind != ScheduleKind::none;
      })) {
    analysis.pipelines = pipelines.devices;
  }
  const Dependencies dependencies(devices, analysis.pipelines);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    analysis.devices.push_back(report_of(devices[i], i, analysis.steps, windows, dependencies));
  }
  if (devices.empty() && trace.flight.empty()) {
    analysis.notes.emplace_back("the trace has no GPU work to analyse");
  } else if (!devices.empty()) {
    rank(analysis);
  }
  return analysis;
}

std::vector<Counter> counters_of(const Analysis& analysis) {
  constexpr double kPercent = 100;
  std::vector<Counter> counters;
  const auto add = [&](std::string label, auto value) {
    Counter counter;
    counter.label = std::move(label);
    for (std::size_t i = 0; i < analysis.steps.size(); ++i) {
      counter.points.emplace_back(analysis.steps[i].begin, value(i));
    }
    if (!analysis.steps.empty()) counter.points.emplace_back(analysis.steps.back().end, 0);
    counters.push_back(std::move(counter));
  };
  for (const DeviceReport& device : analysis.devices) {
    add(device.label + " compute %", [&](std::size_t i) {
      const TimeShare& share = device.steps[i];
      return share.span > 0
                 ? kPercent * static_cast<double>(share.compute) / static_cast<double>(share.span)
                 : 0.0;
    });
  }
  if (!analysis.schedules.empty() && analysis.schedules[0].kind != ScheduleKind::none) {
    add("bubble %",
        [&](std::size_t i) { return kPercent * analysis.schedules[i].measured_bubble; });
  }
  return counters;
}

}  // namespace assay::timeline
