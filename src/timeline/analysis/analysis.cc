#include "timeline/analysis/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>

#include "base/statistics.h"
#include "timeline/analysis/devices.h"
#include "timeline/analysis/idle.h"
#include "timeline/analysis/pipelines.h"
#include "timeline/analysis/slice_steps.h"
#include "timeline/analysis/windows.h"
#include "timeline/cpu_work.h"
#include "timeline/intervals.h"

namespace assay::timeline {
namespace {

// The jobs of a step. With known launches, they begin while its work computes.
StageJobs jobs_of(const Device& device, const Windows& windows, const Step& step) {
  Interval window = windows.of(device, step);
  const auto own = device.by_step.find(step.number);
  if (device.launched && own != device.by_step.end() && !own->second.compute.empty()) {
    window = {own->second.compute.front().begin, own->second.compute.back().end};
  }
  const auto begin = std::ranges::lower_bound(device.jobs, window.begin, {}, &PipelineJob::begin);
  const auto end = std::partition_point(
      begin, device.jobs.end(), [&](const PipelineJob& job) { return job.begin < window.end; });
  return {begin, end};
}

// Uses the first step in which every device with jobs has a job.
Pipelines pipelines_of(const Trace& trace, const std::vector<Device>& devices,
                       const Windows& windows, const std::vector<Step>& steps) {
  // On clocks that nothing relates, micro batches must be seen to pass through the stages.
  std::vector<std::vector<std::int32_t>> groups;
  if (!trace.clocks_assumed) groups = pipeline_groups(trace.sources);
  std::vector<StageDevice> stages;
  for (const Step& step : steps) {
    stages.clear();
    bool complete = true;
    for (const Device& device : devices) {
      stages.push_back({device.rank, jobs_of(device, windows, step)});
      complete &= !stages.back().jobs.empty() || device.jobs.empty();
    }
    if (complete) break;
  }
  Pipelines pipelines = find_pipelines(stages, groups, trace.sources.empty());
  if (!pipelines.reason.empty() && (!trace.one_clock || trace.clocks_assumed)) {
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
      stages.push_back(jobs_of(devices[device], windows, step));
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
                     const Interval& window, const Dependencies& dependencies,
                     std::vector<Wait>* waits) {
  if (window.end <= window.begin) return {};
  const std::array<Interval, 1> cut{window};
  const Busy& mine = device.launched ? device.work_of(step.number) : device.busy;
  return share_of(device, stage, step.number, mine.within(cut), window, dependencies, waits);
}

// Sets when the GPU waited for its host, by the step of the host.
void add_lateness(const Device& device, std::size_t stage, const SliceSteps& steps,
                  const Dependencies& dependencies, DeviceReport& report) {
  constexpr auto kHost = static_cast<std::size_t>(IdleCause::host);
  constexpr std::size_t kMostStalls = 64;
  for (const TimeShare& share : report.steps) {
    report.late.push_back({share.idle_by[kHost] - share.loading, share.loading});
  }
  if (!device.launched) return;
  report.late.assign(report.steps.size(), {});
  for (const Wait& wait : host_waits(device, stage, dependencies)) {
    const Nanos middle = wait.begin + (wait.end - wait.begin) / 2;
    const auto step = steps.begun_by_host(device.source, middle);
    if (!step) continue;
    Lateness& late = report.late[*step];
    (wait.lane == kHost ? late.launches : late.loading) += wait.end - wait.begin;
    report.stalls.push_back({wait.begin, wait.end});
  }
  const auto length = [](const Interval& stall) { return stall.end - stall.begin; };
  std::ranges::sort(report.stalls, std::greater{}, length);
  if (report.stalls.size() > kMostStalls) report.stalls.resize(kMostStalls);
}

DeviceReport report_of(const Device& device, std::size_t stage, const Analysis& analysis,
                       const Windows& windows, const SliceSteps& host_steps,
                       const Dependencies& dependencies, bool waits) {
  DeviceReport report;
  static_cast<DeviceIdentity&>(report) = device;
  report.counts = device.counts;
  report.unrecorded = device.unrecorded;
  if (!device.any.empty()) {
    report.whole = share_of(device, stage, kNone, device.busy,
                            {device.any.front().begin, device.any.back().end}, dependencies);
  }
  for (const Step& step : analysis.steps) {
    report.steps.push_back(step_share(device, stage, step, windows.of(device, step), dependencies,
                                      waits ? &report.waits : nullptr));
    report.total += report.steps.back();
  }
  add_lateness(device, stage, host_steps, dependencies, report);
  if (!device.launched) return report;
  report.outside_counts = device.outside;
  const Busy& outside = device.work_of(kNone);
  const Span all = outside.span();
  if (all.begin >= all.end) return report;
  report.outside = share_of(device, stage, kNone, outside, {all.begin, all.end}, dependencies);
  report.outside.idle = report.outside.other_steps = report.outside.span = 0;
  report.outside.idle_by = {};
  report.outside.loading = 0;
  return report;
}

// The index of the highest value, if it exceeds the median of the others by a fiftieth of the time.
std::optional<std::size_t> standing_out(std::vector<Nanos> values, Nanos time) {
  if (values.size() < 2) return std::nullopt;
  const auto highest = std::ranges::max_element(values);
  const auto index = static_cast<std::size_t>(highest - values.begin());
  const Nanos most = *highest;
  values.erase(highest);
  return 50 * (most - upper_median(std::move(values))) > time ? std::optional(index) : std::nullopt;
}

void rank(Analysis& analysis) {
  std::map<std::string, std::pair<Nanos, Nanos>> machines;
  std::vector<Nanos> devices;
  Nanos longest = 0;
  for (const DeviceReport& device : analysis.devices) {
    devices.push_back(device.total.compute);
    longest = std::max(longest, device.total.span);
    auto& [sum, count] = machines[device.machine];
    sum += device.total.compute;
    ++count;
  }
  analysis.critical_stage = standing_out(std::move(devices), longest);
  std::vector<Nanos> means;
  means.reserve(machines.size());
  for (const auto& [name, machine] : machines) means.push_back(machine.first / machine.second);
  const auto slowest = standing_out(std::move(means), longest);
  if (slowest) {
    analysis.slowest_machine =
        std::next(machines.begin(), static_cast<std::ptrdiff_t>(*slowest))->first;
  }
}

// How long nothing ran around the begin of each next step, where that is longer than usual. A step
// that no launch ends lasts until its own mark, so the pause is added.
void add_pauses(const std::vector<Device>& devices, const Trace& trace, Analysis& analysis) {
  analysis.pauses.assign(analysis.steps.size(), 0);
  if (!trace.one_clock || trace.clocks_assumed || analysis.steps.size() < 2) return;
  const bool launched = std::ranges::any_of(devices, &Device::launched);
  for (std::size_t i = 0; i + 1 < analysis.steps.size(); ++i) {
    if (analysis.steps[i + 1].number != analysis.steps[i].number + 1) continue;
    const Nanos boundary = analysis.windows[i + 1].begin;
    Nanos last = std::numeric_limits<Nanos>::min();
    Nanos first = std::numeric_limits<Nanos>::max();
    for (const Device& device : devices) {
      const auto behind = std::ranges::lower_bound(device.any, boundary, {}, &Interval::begin);
      if (behind != device.any.begin()) last = std::max(last, std::prev(behind)->end);
      if (behind != device.any.end()) first = std::min(first, behind->begin);
    }
    const bool between_work =
        last > std::numeric_limits<Nanos>::min() && first < std::numeric_limits<Nanos>::max();
    if (between_work && first > last) analysis.pauses[i] = first - last;
    if (!launched) {
      analysis.lengths[i] += std::max<Nanos>(0, boundary - analysis.windows[i].end);
    }
  }
  std::vector<Nanos> between(analysis.pauses.begin(), std::prev(analysis.pauses.end()));
  const Nanos usual = lower_median(std::move(between));
  const Nanos step = lower_median(analysis.lengths);
  for (Nanos& pause : analysis.pauses) pause = 10 * (pause - usual) > step ? pause - usual : 0;
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
  copying += other.copying;
  idle += other.idle;
  other_steps += other.other_steps;
  loading += other.loading;
  for (std::size_t i = 0; i < kIdleCauses; ++i) idle_by[i] += other.idle_by[i];
  return *this;
}

Analysis analyse(const Trace& trace, bool waits) {
  Analysis analysis;
  analysis.steps = steps_of(trace);
  analysis.notes = trace.notes;
  const std::vector<Device> devices = devices_of(trace, analysis.device_of);
  const Windows windows(trace, devices);
  const Pipelines pipelines = pipelines_of(trace, devices, windows, analysis.steps);
  std::map<std::pair<ServingBatch, std::size_t>, std::size_t> kinds;
  for (std::size_t i = 0; i < analysis.steps.size(); ++i) {
    const Step& step = analysis.steps[i];
    const auto found = trace.batches.find(step.number);
    const ServingBatch batch = found == trace.batches.end() ? ServingBatch() : found->second;
    const bool unlike = !trace.batches.empty() && !batch.sized();
    analysis.kinds.push_back(
        kinds.try_emplace({batch, unlike ? i + 1 : 0}, kinds.size()).first->second);
    analysis.schedules.push_back(schedule_of(devices, pipelines, windows, step));
    analysis.windows.push_back(windows.of_all(devices, step));
    analysis.lengths.push_back(windows.length(devices, step));
  }
  add_pauses(devices, trace, analysis);
  // Only stages of a pipeline depend on each other's jobs.
  if (std::ranges::any_of(analysis.schedules, [](const Schedule& schedule) {
        return schedule.kind != ScheduleKind::none;
      })) {
    analysis.pipelines = pipelines.devices;
  }
  const Dependencies dependencies(devices, analysis.pipelines);
  const SliceSteps host_steps(trace, analysis);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    analysis.devices.push_back(
        report_of(devices[i], i, analysis, windows, host_steps, dependencies, waits));
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
