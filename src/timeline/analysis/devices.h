#pragma once

// The GPUs of a trace, each with all that it did: by kind, by the step that launched it, as jobs of
// a pipeline.

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "timeline/analysis/work_counts.h"
#include "timeline/intervals.h"
#include "timeline/model.h"
#include "timeline/schedule.h"

namespace assay::timeline {

// The time that each kind of work took.
struct Busy {
  Intervals compute, communication, memory;

  void add(Kind kind, const Interval& interval);
  void unite_all();
  Intervals all() const;
  Busy within(std::span<const Interval> cut) const;
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
  Intervals queue_full;       // when a stream could take no more launches
  // Pipeline jobs, ordered by begin.
  StageJobs jobs;
};

// A device is the GPU tracks of one number of one process. Those of logs stand in the order that
// they were asked for in, others in that of their ranks.
std::vector<Device> devices_of(const Trace& trace);

}  // namespace assay::timeline
