#pragma once

// The memory that each process's allocator held on each device.

#include <vector>

#include "timeline/model.h"

namespace assay::timeline {

struct MemoryPeak {
  std::int32_t rank = kNone;
  std::int32_t device = kNone;  // kNone: the host's memory
  std::int64_t allocated = 0;   // highest number of bytes
  std::int64_t reserved = 0;
  Nanos at = 0;  // the time of the peak
};

std::vector<MemoryPeak> memory_peaks(const Trace& trace);

// Two counters for each device: allocated and reserved, in bytes.
std::vector<Counter> memory_counters(const Trace& trace);

}  // namespace assay::timeline
