#pragma once

// Relates the clocks of machines: by a manifest, by recorded clock probes, by the order of sends
// and receives in a pipeline, or by the ends of collectives. Each relation has an uncertainty. A
// machine without a relation keeps its own clock, and the trace notes this.

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "timeline/model.h"

namespace assay::timeline {

struct ClockOptions {
  std::filesystem::path
      manifest;  // {"version": 1, "offsets": [{"machine", "offset_us", "uncertainty_us"}]}
  std::filesystem::path probes;  // one JSON object a line: {"from", "to", "t1".."t4"} (nanoseconds)
  bool pairs = false;            // the tracks, in their order, are the stages of one pipeline

  bool any() const { return !manifest.empty() || !probes.empty() || pairs; }
};

// A machine's clock relative to the first machine's: reference time = machine time + offset.
struct MachineClock {
  std::string machine;
  Nanos offset = 0;
  Nanos uncertainty = 0;  // half the width of the interval that holds the true offset
  bool related = false;
  std::string source;  // "manifest", "12 probes", "96 send/receive pairs"
};

// One NTP-style probe: t1 sent (on `from`), t2 received, t3 answered (on `to`), t4 back.
struct ClockProbe {
  std::string from, to;
  Nanos t1 = 0, t2 = 0, t3 = 0, t4 = 0;
};

// The interval that contains the offset between two clocks (`to` + offset = `from`).
struct ClockBounds {
  Nanos low = std::numeric_limits<Nanos>::min();
  Nanos high = std::numeric_limits<Nanos>::max();
  std::uint64_t evidence = 0;
};

// Intersects the bounds of all probes; a probe bounds the offset because no message arrives before
// it is sent. An error for an empty intersection: a clock was set during the run.
Result<ClockBounds> bounds_of_probes(std::span<const ClockProbe> probes, const std::string& from,
                                     const std::string& to);

// Reads a file of JSON lines, one probe each.
Result<std::vector<ClockProbe>> read_probes(const std::filesystem::path& path);

// The clocks of `machines`; the first machine is the reference. Only `options.pairs` reads
// `pipeline`, whose GPU tracks must be in the order of the stages.
Result<std::vector<MachineClock>> relate_clocks(std::span<const std::string> machines,
                                                const ClockOptions& options, const Trace* pipeline);

// The machines of the tracks, in order of first appearance.
std::vector<std::string> machines_of(std::span<const Track> tracks);

// One line for each machine except the first.
std::vector<std::string> describe_clocks(std::span<const MachineClock> clocks);

// Shifts all times of a trace in memory onto one clock and adds notes: by the options, or without
// any by the ends of collectives (relate_by_collectives).
Status relate_clocks(Trace& trace, const ClockOptions& options);

// All ranks leave an all-reduce together, so the ends of its parts are one moment on several
// clocks. Shifts the times of ranks on other hosts (or on unknown hosts) onto the clock of the
// first rank, with a drift for each clock, and notes the residual. Ranks of one named host share a
// clock, unless their collectives contradict it. With too few collectives, or with ends that
// contradict each other, times stay as they are and the trace notes that nobody knows who waits.
void relate_by_collectives(Trace& trace);

}  // namespace assay::timeline
