#pragma once

// How much a GPU did, whatever time it took.

#include <cstdint>

namespace assay::timeline {

struct WorkCounts {
  std::uint64_t kernels = 0;  // those of communication among them
  std::uint64_t communication_kernels = 0;
  std::uint64_t copies = 0;  // and fills
};

}  // namespace assay::timeline
