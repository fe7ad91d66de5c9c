#include "timeline/analysis/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "base/text.h"
#include "timeline/analysis/queues.h"
#include "timeline/analysis/slice_steps.h"
#include "timeline/names.h"

namespace assay::timeline {
namespace {

// Orders devices of several processes by rank and number. Devices of logs keep their order, which
// is the order of the pipeline's stages.
void order(std::vector<Device>& devices, std::vector<std::size_t>& device_of) {
  std::vector<std::size_t> at(devices.size());
  std::iota(at.begin(), at.end(), 0U);
  std::ranges::stable_sort(at, [&](std::size_t a, std::size_t b) {
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

// Adds process and machine to equal labels.
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
    // A track without a device number is its own device.
    const std::string own = track.device == kNone ? track.process + track.label : "";
    const auto [entry, is_new] = known.try_emplace(
        {track.rank, track.machine, track.pid, own, track.device}, devices.size());
    device_of[i] = entry->second;
    of_processes |= !track.process.empty();
    if (is_new) {
      Device device;
      static_cast<DeviceIdentity&>(device) = {label_of(track), track.machine, track.device,
                                              track.rank,      track.pid,     track.source};
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

// What a stream did until its first work of a step.
struct Lead {
  Nanos end = std::numeric_limits<Nanos>::min();
  std::int64_t step = kNone;
  Start first;
};

void add_work(const Trace& trace, const StepsOfSources& steps, const Slice& slice, Lead& lead,
              Device& device) {
  const Interval interval{slice.begin, slice.end};
  device.busy.add(slice.kind, interval);
  count(slice.kind, device.counts);
  if (!is_gpu_work(slice.kind)) return;
  std::int64_t step = kNone;
  if (const Launch* launch = trace.launch_of(slice)) {
    step = steps.at(trace.tracks[launch->track].source, launch->begin);
    device.launched |= steps.any(trace.tracks[launch->track].source);
    device.starts.push_back({slice.begin, launch->end});
  }
  if (lead.step == kNone && step == kNone) lead.end = std::max(lead.end, slice.end);
  if (lead.step == kNone && step != kNone) lead = {lead.end, step, device.starts.back()};
  device.by_step[step].add(slice.kind, interval);
  if (step == kNone) count(slice.kind, device.outside);
}

// Sets until when a device did earlier work. A stream whose first work waits for nothing that is
// recorded did it before the recording.
void find_carried(std::span<const Lead> leads, Device& device) {
  constexpr Nanos kLeastWait = 100'000;
  if (!device.launched || device.marks.empty()) return;
  const Step& mark = device.marks.front();
  for (const Lead& lead : leads) {
    if (lead.step == mark.number) device.carried = std::max(device.carried, lead.end);
  }
  for (const Lead& lead : leads) {
    if (lead.step != mark.number || lead.end > mark.begin) continue;
    const auto next = std::ranges::lower_bound(device.any, lead.first.begin, {}, &Interval::begin);
    const Nanos free = next == device.any.begin() ? mark.begin : std::prev(next)->end;
    const Nanos wait = lead.first.begin - std::max({free, lead.first.launched, mark.begin});
    const bool first = device.by_step[mark.number].begins_at(lead.first.begin, 20);
    if (wait < kLeastWait || lead.first.begin < device.carried || !first) continue;
    device.carried = lead.first.begin;
    device.unrecorded = wait;
  }
}

}  // namespace

void Busy::add(Kind kind, const Interval& interval) {
  if (kind == Kind::compute) compute.push_back(interval);
  if (kind == Kind::communication) communication.push_back(interval);
  if (kind == Kind::memory) memory.push_back(interval);
}

void Busy::unite_all() {
  compute = unite(std::move(compute));
  communication = unite(std::move(communication));
  memory = unite(std::move(memory));
}

Intervals Busy::all() const {
  Intervals any = compute;
  any.insert(any.end(), communication.begin(), communication.end());
  any.insert(any.end(), memory.begin(), memory.end());
  return unite(std::move(any));
}

Busy Busy::within(std::span<const Interval> cut) const {
  return {intersect(compute, cut), intersect(communication, cut), intersect(memory, cut)};
}

bool Busy::begins_at(Nanos time, int part) const {
  if (span().begin >= time) return true;
  const std::array<Interval, 1> before{Interval{std::numeric_limits<Nanos>::min(), time}};
  const Intervals whole = all();
  return part * measure(intersect(whole, before)) <= measure(whole);
}

Span Busy::span() const {
  Span span;
  for (const Intervals* part : {&compute, &communication, &memory}) {
    if (!part->empty()) widen(span, Span{part->front().begin, part->back().end});
  }
  return span;
}

std::map<std::uint32_t, Intervals> loader_waits(const Trace& trace) {
  std::unordered_map<StringId, bool> known;
  const auto loads = [&](StringId id) {
    const auto [entry, is_new] = known.try_emplace(id, false);
    if (is_new) {
      const std::string name = lowered(trace.strings.text(id));
      entry->second = has_any(name, {"dataloader", "data_loader", "data loader"});
    }
    return entry->second;
  };
  std::map<std::uint32_t, Intervals> waits;
  for (const Slice& slice : trace.slices) {
    const Track& track = trace.tracks[slice.track];
    if (track.gpu || track.jobs || (!loads(slice.name) && !loads(slice.category))) continue;
    waits[track.source].push_back({slice.begin, slice.end});
  }
  for (auto& [source, intervals] : waits) intervals = unite(std::move(intervals));
  return waits;
}

const Busy& Device::work_of(std::int64_t step) const {
  static const Busy kNothing;
  const auto work = by_step.find(step);
  return work == by_step.end() ? kNothing : work->second;
}

std::vector<Device> devices_of(const Trace& trace, std::vector<std::size_t>& device_of) {
  std::vector<Device> devices = find_devices(trace, device_of);
  const StepsOfSources steps(trace);
  std::vector<Lead> leads(trace.tracks.size());
  for (const Slice& slice : trace.slices) {
    if (!trace.tracks[slice.track].gpu) continue;
    Device& device = devices[device_of[slice.track]];
    if (!trace.tracks[slice.track].jobs || !device.has_work) {
      add_work(trace, steps, slice, leads[slice.track], device);
    }
    PipelineJob job{.micro_batch = slice.micro_batch, .begin = slice.begin, .end = slice.end};
    if (slice.micro_batch != kNone && parse_job_type(trace.strings.text(slice.category), job)) {
      device.jobs.push_back(job);
    }
  }
  for (StreamQueue& queue : stream_queues(trace)) {
    Intervals& full = devices[device_of[queue.track]].queue_full;
    full.insert(full.end(), queue.full.begin(), queue.full.end());
  }
  auto loading = loader_waits(trace);
  for (Device& device : devices) {
    device.marks = steps.of(device.source);
    device.loading = loading[device.source];
    device.queue_full = unite(std::move(device.queue_full));
    device.busy.unite_all();
    device.any = device.busy.all();
    std::ranges::sort(device.starts);
    for (auto& [step, busy] : device.by_step) busy.unite_all();
  }
  std::vector<std::vector<Lead>> of_device(devices.size());
  for (std::size_t i = 0; i < leads.size(); ++i) {
    if (leads[i].step != kNone) of_device[device_of[i]].push_back(leads[i]);
  }
  for (std::size_t i = 0; i < devices.size(); ++i) find_carried(of_device[i], devices[i]);
  return devices;
}

}  // namespace assay::timeline
