#pragma once

// Counts of a GPU's work.

#include <cstdint>

namespace assay::timeline {

struct WorkCounts {
  std::uint64_t kernels = 0;  // including communication
  std::uint64_t communication_kernels = 0;
  std::uint64_t copies = 0;  // including fills
};

}  // namespace assay::timeline
