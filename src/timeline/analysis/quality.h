#pragma once

// What a trace lacks or contradicts, told before all figures.

#include <string>
#include <vector>

#include "timeline/analysis/analysis.h"
#include "timeline/model.h"

namespace assay::timeline {

struct Quality {
  std::uint64_t lost_launches = 0;  // launches of kernels without a kernel
  Nanos lost_time = 0;              // of these calls, on the host
  std::uint64_t hollow_steps = 0;   // of a device, without GPU work
  Nanos hollow_time = 0;
  std::uint64_t unrecorded = 0;  // devices that began with earlier work that is not in the trace
  Nanos unrecorded_time = 0;
  std::uint64_t overlapping = 0;  // kernels that begin before their stream's last one ended
  Nanos overlapping_time = 0;
  std::uint64_t dropped = 0;         // damaged events
  std::vector<std::string> damaged;  // files that lost something, one line each
  std::string apart;                 // two ranks that do not overlap in time, or empty

  std::vector<std::string> lines() const;
};

Quality quality_of(const Trace& trace, const Analysis& analysis);

}  // namespace assay::timeline
