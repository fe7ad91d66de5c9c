#pragma once

// `assay timeline analyze`: splits each GPU's time by step into kinds of work and causes of idle
// time.

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "timeline/analysis/devices.h"
#include "timeline/intervals.h"
#include "timeline/model.h"
#include "timeline/schedule.h"

namespace assay::timeline {

// The cause of a gap in a GPU's work:
// fill, drain: before a pipeline stage's first work, and after its last, while it waits for other
// stages.
// dependency: the job after the gap waited for the same micro batch on the neighbouring stage.
// host: the gap until the launch of the work that ends it; the whole gap without known launches.
// queue: as host, but the launch was late because the stream's queue was full.
// device: the gap after the launch (waiting for an event, start-up time).
enum class IdleCause : std::uint8_t { fill, drain, dependency, host, device, queue };
inline constexpr std::size_t kIdleCauses = 6;
std::string_view name(IdleCause cause);

// Invariant: compute + exposed_communication() + memory + idle + other_steps = span.
struct TimeShare {
  Nanos span = 0;
  Nanos compute = 0;
  Nanos communication = 0;         // exposed and hidden
  Nanos hidden_communication = 0;  // the part behind compute
  Nanos memory = 0;                // copies behind neither compute nor communication
  Nanos copying = 0;               // copies beside no compute: communication may only wait
  Nanos idle = 0;
  Nanos other_steps = 0;  // only work launched by other steps ran
  std::array<Nanos, kIdleCauses> idle_by{};
  Nanos loading = 0;  // of the host's idle time: in the data loader

  Nanos exposed_communication() const { return communication - hidden_communication; }
  TimeShare& operator+=(const TimeShare& other);
};

// A part of a gap in a GPU's work. Its lane is an IdleCause, or kLoadingLane: the host was in the
// data loader.
struct Wait {
  Nanos begin = 0;
  Nanos end = 0;
  std::size_t lane = 0;
};
inline constexpr std::size_t kLoadingLane = kIdleCauses;

// How long a GPU waited for its host in a step of the host.
struct Lateness {
  Nanos launches = 0;
  Nanos loading = 0;  // in the data loader
};

struct DeviceReport : DeviceIdentity {
  TimeShare whole;  // from its first work to its last, regardless of steps
  WorkCounts counts;
  TimeShare total;
  std::vector<TimeShare> steps;  // as Analysis::steps
  // Work that no step launched. Only where launches assign work to steps.
  TimeShare outside;
  WorkCounts outside_counts;
  std::vector<Lateness> late;    // as Analysis::steps
  Nanos unrecorded = 0;          // as Device::unrecorded
  std::vector<Interval> stalls;  // its longest waits for the host, the longest first
  std::vector<Wait> waits;       // within the steps; only if analyse() was asked for them
};

struct Analysis {
  std::vector<Step> steps;
  std::vector<std::size_t> kinds;  // by step: other batches of a server are other work
  std::vector<Interval> windows;   // by step: when the GPUs worked on it
  std::vector<Nanos> lengths;      // by step: until the next one begins
  std::vector<Nanos> pauses;       // by step: behind it nothing runs for longer than usual; else 0
  std::vector<DeviceReport> devices;
  std::vector<std::size_t> device_of;  // by track; meaningless for tracks of the host
  std::vector<Schedule> schedules;     // by step; ScheduleKind::none without a pipeline
  std::vector<std::vector<std::size_t>>
      pipelines;                              // indices into devices, in the order of the stages
  std::optional<std::size_t> critical_stage;  // the device that computes longest, if one stands out
  std::string slowest_machine;  // with the longest mean compute time; empty: none stands out
  std::vector<std::string> notes;

  Nanos time() const { return std::accumulate(lengths.begin(), lengths.end(), Nanos{0}); }
  Nanos per_step(Nanos time) const {
    return time / static_cast<Nanos>(std::max<std::size_t>(1, steps.size()));
  }
};

// Analyses the trace by its steps, or as one step without any. With known launches, a step owns the
// work that it launched, and lasts as windows.h describes. Otherwise, it owns the work between its
// marks. `waits`: with each wait, for a drawing.
Analysis analyse(const Trace& trace, bool waits = false);

// One counter a device (its share of compute by step) and one for the pipeline's bubble.
std::vector<Counter> counters_of(const Analysis& analysis);

}  // namespace assay::timeline
