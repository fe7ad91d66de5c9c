#pragma once

// Measures what a process and its descendants use.

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace assay::chain::stage {

struct Usage {
  double rss_mb = 0;         // resident memory of all; a shared page counts once per process
  double gpu_memory_mb = 0;  // 0 also without a GPU; see gpu_seen
  double gpu_percent = 0;
  bool gpu_seen = false;  // one of the processes had memory on a GPU
  void keep_peak(const Usage& other);
};

// Returns zeros for a process that has ended. `gpus_before` is nvml_used_mb() at its start.
Usage sample_usage(pid_t leader, const std::vector<double>& gpus_before);

}  // namespace assay::chain::stage
