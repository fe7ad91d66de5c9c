#pragma once

// Kernel times over a trace and by step.

#include <cstdint>
#include <string>
#include <vector>

#include "timeline/model.h"

namespace assay::timeline {

struct KernelRow {
  std::string name;
  Kind kind = Kind::compute;
  std::uint64_t count = 0;
  Nanos total = 0;
  Nanos longest = 0;
  // Percentiles of its time over the steps of each rank; without steps, the trace is one step.
  Nanos step_p50 = 0;
  Nanos step_p99 = 0;
  // Counters of a mean call; KernelCounters::kUnknown without any.
  double flop = KernelCounters::kUnknown;
  double bytes = KernelCounters::kUnknown;

  bool counted() const { return flop >= 0 || bytes >= 0; }
  // `amount` of a mean call by nanosecond of its time (10^9 a second); 0 if unknown.
  double rate(double amount) const;
};

// Longest total first.
std::vector<KernelRow> kernels_of(const Trace& trace);

}  // namespace assay::timeline
