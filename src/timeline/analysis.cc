#include "timeline/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "timeline/intervals.h"

namespace assay::timeline {
namespace {

struct Device {
  std::string label;
  std::string machine;
  std::int32_t number = kNone;
  bool has_work = false;  // tracks of kernels and copies, beside those of jobs
  Intervals compute, communication, memory;
  // Pipeline jobs, ordered by begin.
  StageJobs jobs;
};

// Several processes' devices come in the order of their files: they are ordered by number. Those of
// logs stay in the order that they were asked for in, which is the pipeline's.
void order(std::vector<Device>& devices, std::vector<std::size_t>& device_of) {
  std::vector<std::size_t> at(devices.size());
  std::iota(at.begin(), at.end(), 0U);
  std::stable_sort(at.begin(), at.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(devices[a].machine, devices[a].number) <
           std::tie(devices[b].machine, devices[b].number);
  });
  std::vector<Device> ordered;
  std::vector<std::size_t> place(devices.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    place[at[i]] = i;
    ordered.push_back(std::move(devices[at[i]]));
  }
  devices = std::move(ordered);
  for (std::size_t& device : device_of) device = devices.empty() ? 0 : place[device];
}

std::vector<Device> devices_of(const Trace& trace) {
  std::vector<Device> devices;
  bool of_processes = false;
  std::map<std::tuple<std::string, std::string, std::int32_t>, std::size_t> known;
  std::vector<std::size_t> device_of(trace.tracks.size(), 0);
  for (std::size_t i = 0; i < trace.tracks.size(); ++i) {
    const Track& track = trace.tracks[i];
    if (!track.gpu) continue;
    // A track without a device number is a device of its own.
    const std::string own = track.device == kNone ? track.process + track.label : "";
    const auto [entry, is_new] =
        known.try_emplace({track.machine, own, track.device}, devices.size());
    device_of[i] = entry->second;
    of_processes |= !track.process.empty();
    if (is_new) {
      Device device;
      device.label = track.process.empty() || track.device == kNone
                         ? track.label
                         : fmt::format("GPU:{}", track.device);
      device.machine = track.machine;
      device.number = track.device;
      devices.push_back(std::move(device));
    }
    devices[entry->second].has_work |= !track.jobs;
  }
  if (of_processes) order(devices, device_of);
  for (const Slice& slice : trace.slices) {
    if (!trace.tracks[slice.track].gpu) continue;
    Device& device = devices[device_of[slice.track]];
    if (!trace.tracks[slice.track].jobs || !device.has_work) {
      const Interval interval{slice.begin, slice.end};
      if (slice.kind == Kind::compute) device.compute.push_back(interval);
      if (slice.kind == Kind::communication) device.communication.push_back(interval);
      if (slice.kind == Kind::memory) device.memory.push_back(interval);
    }
    PipelineJob job{.micro_batch = slice.micro_batch, .begin = slice.begin, .end = slice.end};
    if (slice.micro_batch != kNone && parse_job_type(trace.strings.text(slice.category), job)) {
      device.jobs.push_back(job);
    }
  }
  for (Device& device : devices) {
    device.compute = unite(std::move(device.compute));
    device.communication = unite(std::move(device.communication));
    device.memory = unite(std::move(device.memory));
  }
  return devices;
}

// When the same micro batch was done where this job's input comes from: the stage before for a
// forward, the one behind for a backward.
class Dependencies {
 public:
  explicit Dependencies(const std::vector<Device>& devices) : devices_(devices) {}

  std::optional<Nanos> ready(std::size_t stage, const PipelineJob& job) const {
    const bool forward = job.pass == Pass::forward;
    if (job.pass == Pass::weight || (forward && stage == 0) ||
        (!forward && stage + 1 == devices_.size())) {
      return std::nullopt;
    }
    const StageJobs& source = devices_[forward ? stage - 1 : stage + 1].jobs;
    // The last such job that had begun before this one did.
    auto it = std::partition_point(source.begin(), source.end(), [&](const PipelineJob& other) {
      return other.begin < job.begin;
    });
    while (it != source.begin()) {
      --it;
      if (it->pass == job.pass && it->micro_batch == job.micro_batch) return it->end;
      // A step is over long before this many jobs: what is further back is another step's.
      if (std::distance(it, source.end()) > kMaxLook && job.begin - it->begin > kMaxAge) break;
    }
    return std::nullopt;
  }

 private:
  static constexpr std::ptrdiff_t kMaxLook = 10'000;
  static constexpr Nanos kMaxAge = 60'000'000'000;
  const std::vector<Device>& devices_;
};

// The job that ends a gap, if one begins there.
const PipelineJob* job_at(const StageJobs& jobs, Nanos begin) {
  const auto it = std::partition_point(jobs.begin(), jobs.end(),
                                       [&](const PipelineJob& job) { return job.begin < begin; });
  return it != jobs.end() && it->begin == begin ? &*it : nullptr;
}

TimeShare share_of(const Device& device, std::size_t stage, const Interval& window,
                   const Dependencies& dependencies) {
  const std::array<Interval, 1> cut{window};
  const Intervals compute = intersect(device.compute, cut);
  const Intervals communication = intersect(device.communication, cut);
  const Intervals memory = intersect(device.memory, cut);
  TimeShare share;
  share.span = window.end - window.begin;
  share.compute = measure(compute);
  share.communication = measure(communication);
  share.hidden_communication = measure(intersect(communication, compute));
  Intervals busy = compute;
  busy.insert(busy.end(), communication.begin(), communication.end());
  busy = unite(std::move(busy));
  share.memory = measure(subtract(memory, busy));
  busy.insert(busy.end(), memory.begin(), memory.end());
  busy = unite(std::move(busy));
  const Intervals gaps = subtract(cut, busy);
  share.idle = measure(gaps);
  for (const Interval& gap : gaps) {
    IdleCause cause = IdleCause::host;
    Nanos dependent = 0;
    if (busy.empty() || gap.begin >= busy.back().end) {
      cause = IdleCause::drain;
    } else if (gap.end <= busy.front().begin) {
      cause = IdleCause::fill;
    } else if (const PipelineJob* job = job_at(device.jobs, gap.end)) {
      const auto ready = dependencies.ready(stage, *job);
      if (ready) dependent = std::clamp(*ready, gap.begin, gap.end) - gap.begin;
    }
    share.idle_by[static_cast<std::size_t>(IdleCause::dependency)] += dependent;
    share.idle_by[static_cast<std::size_t>(cause)] += gap.end - gap.begin - dependent;
  }
  return share;
}

Schedule schedule_of(const std::vector<Device>& devices, const Interval& window) {
  std::vector<StageJobs> stages;
  for (const Device& device : devices) {
    StageJobs jobs;
    for (auto it =
             std::partition_point(device.jobs.begin(), device.jobs.end(),
                                  [&](const PipelineJob& job) { return job.begin < window.begin; });
         it != device.jobs.end() && it->begin < window.end; ++it) {
      jobs.push_back(*it);
    }
    stages.push_back(std::move(jobs));
  }
  return recognise_schedule(stages);
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
  const auto slowest = std::max_element(machines.begin(), machines.end(), [](auto& a, auto& b) {
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
    if (!trace.tracks[slice.track].gpu) continue;
    whole.begin = std::min(whole.begin, slice.begin);
    whole.end = std::max(whole.end, slice.end);
  }
  if (whole.begin < whole.end) steps.push_back(whole);
  return steps;
}

}  // namespace

std::string_view name(IdleCause cause) {
  constexpr std::array<std::string_view, kIdleCauses> kNames{"fill", "drain", "dependency", "host"};
  return kNames[static_cast<std::size_t>(cause)];
}

TimeShare& TimeShare::operator+=(const TimeShare& other) {
  span += other.span;
  compute += other.compute;
  communication += other.communication;
  hidden_communication += other.hidden_communication;
  memory += other.memory;
  idle += other.idle;
  for (std::size_t i = 0; i < kIdleCauses; ++i) idle_by[i] += other.idle_by[i];
  return *this;
}

Analysis analyse(const Trace& trace) {
  Analysis analysis;
  analysis.steps = steps_of(trace);
  analysis.notes = trace.notes;
  const std::vector<Device> devices = devices_of(trace);
  const Dependencies dependencies(devices);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    DeviceReport report;
    report.label = devices[i].label;
    report.machine = devices[i].machine;
    for (const Step& step : analysis.steps) {
      report.steps.push_back(share_of(devices[i], i, {step.begin, step.end}, dependencies));
      report.total += report.steps.back();
    }
    analysis.devices.push_back(std::move(report));
  }
  for (const Step& step : analysis.steps) {
    analysis.schedules.push_back(schedule_of(devices, {step.begin, step.end}));
  }
  if (devices.empty()) {
    analysis.notes.emplace_back("the trace holds no GPU time: nothing to analyse");
  } else {
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
