#pragma once

// How much memory each process's allocator held on each device, over time.

#include <vector>

#include "timeline/model.h"

namespace assay::timeline {

struct MemoryPeak {
  std::int32_t rank = kNone;
  std::int32_t device = kNone;  // kNone: the host's memory
  std::int64_t allocated = 0;   // bytes, at most
  std::int64_t reserved = 0;
  Nanos at = 0;  // when most was allocated
};

std::vector<MemoryPeak> memory_peaks(const Trace& trace);

// Two counters for each device: allocated and reserved, in bytes.
std::vector<Counter> memory_counters(const Trace& trace);

}  // namespace assay::timeline
