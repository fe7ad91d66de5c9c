#pragma once

// `assay timeline analyze`: where each GPU's time went, step by step, and why it was idle.

#include <array>
#include <string>
#include <vector>

#include "timeline/model.h"
#include "timeline/schedule.h"

namespace assay::timeline {

// Why a GPU did nothing. In a pipeline a gap is a dependency's fault when the job before which it
// lies waited for the same micro batch on the neighbouring stage; what is left is the host's.
enum class IdleCause : std::uint8_t { fill, drain, dependency, host };
inline constexpr std::size_t kIdleCauses = 4;
std::string_view name(IdleCause cause);

// Times in nanoseconds. compute + exposed communication + exposed memory + idle = span.
struct TimeShare {
  Nanos span = 0;
  Nanos compute = 0;
  Nanos communication = 0;         // all of it
  Nanos hidden_communication = 0;  // the part behind compute
  Nanos memory = 0;                // copies behind neither compute nor communication
  Nanos idle = 0;
  std::array<Nanos, kIdleCauses> idle_by{};

  Nanos exposed_communication() const { return communication - hidden_communication; }
  TimeShare& operator+=(const TimeShare& other);
};

struct DeviceReport {
  std::string label;
  std::string machine;
  TimeShare total;
  std::vector<TimeShare> steps;  // as Analysis::steps
};

struct Analysis {
  std::vector<Step> steps;
  std::vector<DeviceReport> devices;
  std::vector<Schedule> schedules;  // by step; none where the trace holds no pipeline
  std::size_t critical_stage = 0;   // index of the device that computes longest
  std::string slowest_machine;      // whose devices compute longest on average; empty: one machine
  std::vector<std::string> notes;
};

// Steps are those of the trace, or all of it as one. A device is the GPU tracks of one number on
// one machine; jobs of a pipeline are used for the schedule.
Analysis analyse(const Trace& trace);

// A counter a device: the share of each step that it computes, and one of the pipeline's bubble.
std::vector<Counter> counters_of(const Analysis& analysis);

}  // namespace assay::timeline
