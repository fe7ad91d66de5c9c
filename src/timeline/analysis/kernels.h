#pragma once

// Which kernels took the time: over a whole trace, step by step, and against another trace.

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
  // Of its time in each step of each rank that has it; the whole trace is one where it has none.
  Nanos step_p50 = 0;
  Nanos step_p99 = 0;
  // Of a mean call, where counters were read; KernelCounters::kUnknown elsewhere.
  double flop = KernelCounters::kUnknown;
  double bytes = KernelCounters::kUnknown;

  bool counted() const { return flop >= 0 || bytes >= 0; }
  // Of a mean call, a nanosecond: 10^9 a second. 0 where it or the time is not known.
  double rate(double amount) const;
};

// Most time first.
std::vector<KernelRow> kernels_of(const Trace& trace);

struct KernelChange {
  std::string name;
  std::uint64_t count_before = 0;
  std::uint64_t count_after = 0;
  Nanos before = 0;  // time in a mean step
  Nanos after = 0;
};

// The largest change first. Rows of two traces belong together by the kernels' names.
std::vector<KernelChange> compare_kernels(const std::vector<KernelRow>& before,
                                          std::size_t steps_before,
                                          const std::vector<KernelRow>& after,
                                          std::size_t steps_after);

}  // namespace assay::timeline
