#pragma once

// `assay timeline analyze`: where each GPU's time went, step by step, and why it was idle.

#include <array>
#include <string>
#include <vector>

#include "timeline/analysis/work_counts.h"
#include "timeline/intervals.h"
#include "timeline/model.h"
#include "timeline/schedule.h"

namespace assay::timeline {

// Why a GPU did nothing. In a pipeline a gap is a dependency's fault when the job before which it
// lies waited for the same micro batch on the neighbouring stage. Where the trace has launches, the
// host's part of a gap ends when the work that ends the gap was launched, and the rest is the
// device's (an event to wait for, the time that a start takes); where it has none, all is the
// host's.
// A host that is late because a stream's queue of launches was full is told apart.
enum class IdleCause : std::uint8_t { fill, drain, dependency, host, device, queue };
inline constexpr std::size_t kIdleCauses = 6;
std::string_view name(IdleCause cause);

// Times in nanoseconds. compute + exposed communication + exposed memory + idle + other steps' work
// = span.
struct TimeShare {
  Nanos span = 0;
  Nanos compute = 0;
  Nanos communication = 0;         // all of it
  Nanos hidden_communication = 0;  // the part behind compute
  Nanos memory = 0;                // copies behind neither compute nor communication
  Nanos idle = 0;
  Nanos other_steps = 0;  // only work that other steps had launched ran
  std::array<Nanos, kIdleCauses> idle_by{};

  Nanos exposed_communication() const { return communication - hidden_communication; }
  TimeShare& operator+=(const TimeShare& other);
};

struct DeviceReport {
  std::string label;
  std::string machine;
  std::int32_t rank = kNone;
  std::int32_t number = kNone;
  std::int64_t pid = kNone;
  TimeShare whole;  // from its first work to its last, whatever launched it
  WorkCounts counts;
  TimeShare total;
  std::vector<TimeShare> steps;  // as Analysis::steps
  // Work of no step: launched outside of all, or by nothing that the trace has. Only where steps
  // are told from launches.
  TimeShare outside;
  WorkCounts outside_counts;
};

struct Analysis {
  std::vector<Step> steps;
  std::vector<Interval> windows;  // by step: when the GPUs worked on it
  std::vector<DeviceReport> devices;
  std::vector<Schedule> schedules;  // by step; none where the trace holds no pipeline
  std::vector<std::vector<std::size_t>> pipelines;  // devices in the order of the stages
  std::size_t critical_stage = 0;  // index of the device that computes longest; of several only
  std::string slowest_machine;     // whose devices compute longest on average; empty: one machine
  std::vector<std::string> notes;
};

// Steps are those of the trace, or all of it as one. A device is the GPU tracks of one number of
// one process (rank, machine, process). Where launches are known a step has the work that it
// launched, and lasts from the first of it to the next step's first; else it has what lies between
// its marks.
Analysis analyse(const Trace& trace);

// A counter a device: the share of each step that it computes, and one of the pipeline's bubble.
std::vector<Counter> counters_of(const Analysis& analysis);

}  // namespace assay::timeline
