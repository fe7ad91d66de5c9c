#pragma once

// The GPUs of a trace with their work: by kind, by the step that launched it, and as pipeline jobs.

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "timeline/intervals.h"
#include "timeline/model.h"
#include "timeline/schedule.h"

namespace assay::timeline {

// Of a GPU's work.
struct WorkCounts {
  std::uint64_t kernels = 0;  // including communication
  std::uint64_t communication_kernels = 0;
  std::uint64_t copies = 0;  // including fills
};

// The times of each kind of work.
struct Busy {
  Intervals compute, communication, memory;

  void add(Kind kind, const Interval& interval);
  void unite_all();
  Intervals all() const;
  Busy within(std::span<const Interval> cut) const;
  bool begins_at(Nanos time, int part) const;  // does at most this part of its work before
  Span span() const;                           // of united intervals; empty without work
};

struct Start {
  Nanos begin = 0;
  Nanos launched = 0;  // when the host call ended
  friend auto operator<=>(const Start&, const Start&) = default;
};

struct DeviceIdentity {
  std::string label;
  std::string machine;
  std::int32_t number = kNone;
  std::int32_t rank = kNone;
  std::int64_t pid = kNone;
  std::uint32_t source = 0;
};

struct Device : DeviceIdentity {
  bool has_work = false;    // has tracks of kernels and copies
  bool launched = false;    // its work belongs to the steps that launched it
  std::vector<Step> marks;  // its process's steps on the host, by begin
  Intervals loading;        // when its process waited for the data loader
  Busy busy;
  Intervals any;  // the union of busy
  WorkCounts counts;
  std::map<std::int64_t, Busy> by_step;  // kNone: of no step
  WorkCounts outside;
  std::vector<Start> starts;  // of work with a known launch, sorted
  Intervals queue_full;       // times at which a stream's launch queue was full
  // Until then it did work that was launched before the first mark. The last part of it may be
  // unrecorded.
  Nanos carried = std::numeric_limits<Nanos>::min();
  Nanos unrecorded = 0;
  StageJobs jobs;  // ordered by begin

  const Busy& work_of(std::int64_t step) const;
};

// A device is the GPU tracks with one device number of one process. Devices of logs keep the order
// of --devices; others are ordered by rank. Sets the device of each track, which is meaningless for
// tracks of the host.
std::vector<Device> devices_of(const Trace& trace, std::vector<std::size_t>& device_of);

// When each process waited for its data loader: ranges named "enumerate(DataLoader)", "dataloader"
// and the like. By source.
std::map<std::uint32_t, Intervals> loader_waits(const Trace& trace);

}  // namespace assay::timeline
