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

// The time that each kind of work took.
struct Busy {
  Intervals compute, communication, memory;

  void add(Kind kind, const Interval& interval) {
    if (kind == Kind::compute) compute.push_back(interval);
    if (kind == Kind::communication) communication.push_back(interval);
    if (kind == Kind::memory) memory.push_back(interval);
  }
  void unite_all() {
    compute = unite(std::move(compute));
    communication = unite(std::move(communication));
    memory = unite(std::move(memory));
  }
  Intervals all() const {
    Intervals any = compute;
    any.insert(any.end(), communication.begin(), communication.end());
    any.insert(any.end(), memory.begin(), memory.end());
    return unite(std::move(any));
  }
  Busy within(std::span<const Interval> cut) const {
    return {intersect(compute, cut), intersect(communication, cut), intersect(memory, cut)};
  }
};

// When a piece of GPU work began, and when the host had launched it.
struct Start {
  Nanos begin = 0;
  Nanos launched = 0;
  friend auto operator<=>(const Start&, const Start&) = default;
};

struct Device {
  std::string label;
  std::string machine;
  std::int32_t number = kNone;
  std::int32_t rank = kNone;
  std::int64_t pid = kNone;
  std::uint32_t source = 0;
  bool has_work = false;  // tracks of kernels and copies, beside those of jobs
  bool launched = false;  // its work is charged to the steps that launched it
  Busy busy;
  Intervals any;  // all of busy, united
  WorkCounts counts;
  std::map<std::int64_t, Busy> by_step;  // kNone: of no step
  WorkCounts outside;
  std::vector<Start> starts;  // sorted; of work whose launch is known
  // Pipeline jobs, ordered by begin.
  StageJobs jobs;
};

// Which step a moment of a process's time lies in.
class StepsOfSources {
 public:
  explicit StepsOfSources(const Trace& trace) : steps_(trace.sources.size()) {
    for (const RankStep& mark : trace.rank_steps) {
      if (mark.source < steps_.size()) steps_[mark.source].push_back(mark.step);
    }
    for (auto& steps : steps_) {
      std::sort(steps.begin(), steps.end(),
                [](const Step& a, const Step& b) { return a.begin < b.begin; });
    }
  }
  bool any(std::uint32_t source) const { return source < steps_.size() && !steps_[source].empty(); }
  std::int64_t at(std::uint32_t source, Nanos time) const {
    if (!any(source)) return kNone;
    const auto& steps = steps_[source];
    const auto behind = std::partition_point(steps.begin(), steps.end(),
                                             [&](const Step& step) { return step.begin <= time; });
    if (behind == steps.begin()) return kNone;
    const Step& step = *std::prev(behind);
    return time < step.end ? step.number : kNone;
  }

 private:
  std::vector<std::vector<Step>> steps_;
};

// Several processes' devices come in the order of their files: they are ordered by number. Those of
// logs stay in the order that they were asked for in, which is the pipeline's.
void order(std::vector<Device>& devices, std::vector<std::size_t>& device_of) {
  std::vector<std::size_t> at(devices.size());
  std::iota(at.begin(), at.end(), 0U);
  std::stable_sort(at.begin(), at.end(), [&](std::size_t a, std::size_t b) {
    const auto key = [](const Device& device) {
      return std::tie(device.rank, device.machine, device.number, device.pid);
    };
    return key(devices[a]) < key(devices[b]);
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

std::string label_of(const Track& track) {
  if (track.process.empty() || track.device == kNone) return track.label;
  return track.rank == kNone ? fmt::format("GPU:{}", track.device)
                             : fmt::format("rank {} · GPU {}", track.rank, track.device);
}

// Devices that would read the same get the name of their process, and of their machine.
void tell_apart(std::vector<Device>& devices) {
  for (const bool by_machine : {false, true}) {
    std::map<std::string, int> seen;
    for (const Device& device : devices) ++seen[device.label];
    for (Device& device : devices) {
      if (seen[device.label] < 2) continue;
      if (by_machine && !device.machine.empty()) device.label += " · " + device.machine;
      if (!by_machine && device.pid != kNone) {
        device.label += fmt::format(" · process {}", device.pid);
      }
    }
  }
}

std::vector<Device> find_devices(const Trace& trace, std::vector<std::size_t>& device_of) {
  std::vector<Device> devices;
  bool of_processes = false;
  std::map<std::tuple<std::int32_t, std::string, std::int64_t, std::string, std::int32_t>,
           std::size_t>
      known;
  device_of.assign(trace.tracks.size(), 0);
  for (std::size_t i = 0; i < trace.tracks.size(); ++i) {
    const Track& track = trace.tracks[i];
    if (!track.gpu) continue;
    // A track without a device number is a device of its own.
    const std::string own = track.device == kNone ? track.process + track.label : "";
    const auto [entry, is_new] = known.try_emplace(
        {track.rank, track.machine, track.pid, own, track.device}, devices.size());
    device_of[i] = entry->second;
    of_processes |= !track.process.empty();
    if (is_new) {
      Device device;
      device.label = label_of(track);
      device.machine = track.machine;
      device.number = track.device;
      device.rank = track.rank;
      device.pid = track.pid;
      device.source = track.source;
      devices.push_back(std::move(device));
    }
    devices[entry->second].has_work |= !track.jobs;
  }
  if (of_processes) order(devices, device_of);
  tell_apart(devices);
  return devices;
}

void count(Kind kind, WorkCounts& counts) {
  if (kind == Kind::memory) ++counts.copies;
  if (kind == Kind::compute || kind == Kind::communication) ++counts.kernels;
  if (kind == Kind::communication) ++counts.communication_kernels;
}

void add_work(const Trace& trace, const StepsOfSources& steps, const Slice& slice, Device& device) {
  const Interval interval{slice.begin, slice.end};
  device.busy.add(slice.kind, interval);
  count(slice.kind, device.counts);
  if (slice.kind == Kind::other || slice.kind == Kind::host) return;
  std::int64_t step = kNone;
  if (slice.detail != kNoIndex && trace.details[slice.detail].launch != kNoIndex) {
    const Launch& launch = trace.launches[trace.details[slice.detail].launch];
    step = steps.at(trace.tracks[launch.track].source, launch.begin);
    device.launched |= steps.any(trace.tracks[launch.track].source);
    device.starts.push_back({slice.begin, launch.end});
  }
  device.by_step[step].add(slice.kind, interval);
  if (step == kNone) count(slice.kind, device.outside);
}

std::vector<Device> devices_of(const Trace& trace) {
  std::vector<std::size_t> device_of;
  std::vector<Device> devices = find_devices(trace, device_of);
  const StepsOfSources steps(trace);
  for (const Slice& slice : trace.slices) {
    if (!trace.tracks[slice.track].gpu) continue;
    Device& device = devices[device_of[slice.track]];
    if (!trace.tracks[slice.track].jobs || !device.has_work) {
      add_work(trace, steps, slice, device);
    }
    PipelineJob job{.micro_batch = slice.micro_batch, .begin = slice.begin, .end = slice.end};
    if (slice.micro_batch != kNone && parse_job_type(trace.strings.text(slice.category), job)) {
      device.jobs.push_back(job);
    }
  }
  for (Device& device : devices) {
    device.busy.unite_all();
    device.any = device.busy.all();
    std::sort(device.starts.begin(), device.starts.end());
    for (auto& [step, busy] : device.by_step) busy.unite_all();
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
    if (devices_.empty() || job.pass == Pass::weight || (forward && stage == 0) ||
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

// How much of a gap passed before the work that ends it had been launched; all of it, where the
// launch is not known.
Nanos late_launch(const Device& device, const Interval& gap) {
  const auto it = std::lower_bound(device.starts.begin(), device.starts.end(),
                                   Start{gap.end, std::numeric_limits<Nanos>::min()});
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
  const Nanos host = std::max<Nanos>(0, late_launch(device, gap) - dependent);
  charge(IdleCause::host, host);
  charge(IdleCause::device, length - dependent - host);
}

// `mine` is the work to be told; `any` all that the device did.
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

// Where a device's steps begin and end. Those told from launches are the same for all devices
// whose clocks may be compared.
class Windows {
 public:
  Windows(const Trace& trace, const std::vector<Device>& devices) : one_clock_(trace.one_clock) {
    for (const Device& device : devices) {
      if (!device.launched) continue;
      for (const auto& [step, busy] : device.by_step) {
        const Intervals all = busy.all();
        if (step == kNone || all.empty()) continue;
        const auto [entry, is_new] =
            windows_[clock(device)].try_emplace(step, Interval{all.front().begin, all.back().end});
        entry->second.begin = std::min(entry->second.begin, all.front().begin);
        entry->second.end = std::max(entry->second.end, all.back().end);
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

  // Empty, where the device's clock has no such step.
  Interval of(const Device& device, const Step& step) const {
    if (!device.launched) return {step.begin, step.end};
    const auto windows = windows_.find(clock(device));
    if (windows == windows_.end()) return {};
    const auto window = windows->second.find(step.number);
    return window == windows->second.end() ? Interval{} : window->second;
  }

  Interval of_all(const std::vector<Device>& devices, const Step& step) const {
    Interval all;
    for (const Device& device : devices) {
      const Interval window = of(device, step);
      if (window.end <= window.begin) continue;
      all.begin = all.end == 0 ? window.begin : std::min(all.begin, window.begin);
      all.end = std::max(all.end, window.end);
    }
    return all;
  }

 private:
  std::string clock(const Device& device) const { return one_clock_ ? "" : device.machine; }

  bool one_clock_;
  std::map<std::string, std::map<std::int64_t, Interval>> windows_;
};

Schedule schedule_of(const std::vector<Device>& devices, const Windows& windows, const Step& step) {
  std::vector<StageJobs> stages;
  for (const Device& device : devices) {
    const Interval window = windows.of(device, step);
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
  report.label = device.label;
  report.machine = device.machine;
  report.rank = device.rank;
  report.number = device.number;
  report.pid = device.pid;
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
    if (slice.kind == Kind::other || slice.kind == Kind::host) continue;
    whole.begin = std::min(whole.begin, slice.begin);
    whole.end = std::max(whole.end, slice.end);
  }
  if (whole.begin < whole.end) steps.push_back(whole);
  return steps;
}

}  // namespace

std::string_view name(IdleCause cause) {
  constexpr std::array<std::string_view, kIdleCauses> kNames{"fill", "drain", "dependency", "host",
                                                             "device"};
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
  for (const Step& step : analysis.steps) {
    analysis.schedules.push_back(schedule_of(devices, windows, step));
    analysis.windows.push_back(windows.of_all(devices, step));
  }
  // Only a pipeline's stages wait for each other's jobs.
  const bool pipeline =
      std::any_of(analysis.schedules.begin(), analysis.schedules.end(),
                  [](const Schedule& schedule) { return schedule.kind != ScheduleKind::none; });
  const std::vector<Device> nobody;
  const Dependencies dependencies(pipeline ? devices : nobody);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    analysis.devices.push_back(report_of(devices[i], i, analysis.steps, windows, dependencies));
  }
  if (devices.empty() && trace.flight.empty()) {
    analysis.notes.emplace_back("the trace holds no GPU time: nothing to analyse");
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
