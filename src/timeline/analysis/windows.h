#pragma once

// When the GPUs worked on each step, by clock.

#include <map>
#include <string>
#include <vector>

#include "timeline/analysis/devices.h"

namespace assay::timeline {

// A step begins at the host's mark. If the GPU still ran earlier work then, recorded or not, the
// step begins when that work ended, or with its own first work if more than a twentieth of its own
// ran before (of the first step, a half). A step ends where the next one begins; the last one ends
// at its mark or with its last work. All devices of one clock share a step's window. Devices
// without launches use the trace's steps as they are.
class Windows {
 public:
  Windows(const Trace& trace, const std::vector<Device>& devices);

  // Empty if the device's clock has no such step.
  Interval of(const Device& device, const Step& step) const;
  // The union over the devices; of several unrelated clocks, the longest window.
  Interval of_all(const std::vector<Device>& devices, const Step& step) const;
  // From the step's begin to the next step's begin, or to its end.
  Nanos length(const std::vector<Device>& devices, const Step& step) const;

 private:
  using ByStep = std::map<std::int64_t, Span>;
  std::string clock(const Device& device) const;
  void add(const Device& device, ByStep& windows) const;

  bool one_clock_;
  std::map<std::string, ByStep> windows_;
};

}  // namespace assay::timeline
