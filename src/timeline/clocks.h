#pragma once

// Machines' clocks differ. They are related only by something stated: a manifest, recorded clock
// probes, or the order that sends and receives of a pipeline must have. Each relation has an
// uncertainty; without one a machine keeps its own clock and the trace says so.

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

// What is known of a machine's clock against the first machine's: true time = its time + offset.
struct MachineClock {
  std::string machine;
  Nanos offset = 0;
  Nanos uncertainty = 0;  // half the width of the interval that holds the true offset
  bool related = false;
  std::string source;  // "manifest", "12 probes", "96 send/receive pairs"
};

// One probe as NTP makes them: t1 sent (on `from`), t2 received, t3 answered (on `to`), t4 back.
struct ClockProbe {
  std::string from, to;
  Nanos t1 = 0, t2 = 0, t3 = 0, t4 = 0;
};

// The interval that the offset between two machines' clocks (`to` + offset = `from`) must lie in.
struct ClockBounds {
  Nanos low = std::numeric_limits<Nanos>::min();
  Nanos high = std::numeric_limits<Nanos>::max();
  std::uint64_t evidence = 0;
};

// Each probe bounds the offset: an answer cannot arrive before it is sent. The bounds of all probes
// are intersected; an empty intersection (a clock that was set meanwhile) is an error.
Result<ClockBounds> bounds_of_probes(std::span<const ClockProbe> probes, const std::string& from,
                                     const std::string& to);

Result<std::vector<ClockProbe>> read_probes(const std::filesystem::path& path);

// The clocks of `machines`, the first being the reference. `pipeline` is read for pairs only; its
// GPU tracks in their order are the stages.
Result<std::vector<MachineClock>> relate_clocks(std::span<const std::string> machines,
                                                const ClockOptions& options, const Trace* pipeline);

// The machines of the tracks, in order of first appearance.
std::vector<std::string> machines_of(std::span<const Track> tracks);

// A line for each machine but the first, or none for one machine.
std::vector<std::string> describe_clocks(std::span<const MachineClock> clocks);

// Moves the slices and tells the notes; for traces in memory.
void apply_clocks(Trace& trace, std::span<const MachineClock> clocks);

}  // namespace assay::timeline
