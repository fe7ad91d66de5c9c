#pragma once

// What a process and its descendants use, seen from outside.

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace assay::chain::stage {

struct Usage {
  double rss_mb = 0;  // resident memory of the whole family, shared pages counted once a process
  double gpu_memory_mb = 0;  // 0 also where there is no GPU; see gpu_seen
  double gpu_percent = 0;
  bool gpu_seen = false;  // a process of the family held memory on a GPU
  void keep_peak(const Usage& other);
};

// A process that has ended uses nothing. `gpus_before`: nvml_used_mb() when it was started.
Usage sample_usage(pid_t leader, const std::vector<double>& gpus_before);

}  // namespace assay::chain::stage
