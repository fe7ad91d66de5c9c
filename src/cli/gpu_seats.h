#pragma once

// Decides which GPUs a run uses, how many workers run on each, and which of their lanes use it.

#include <string>
#include <vector>

#include "base/result.h"
#include "engine/run_config.h"

namespace assay {

inline constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

struct GpuFlags {
  int num_gpus = -1;  // 0: none
  std::string gpu_ids;
  int num_workers_per_gpu = -1;
  double required_gib = 0;  // memory that each worker needs on its GPU
  bool test_cpu = false;
  bool mps = true;
};

// Sets the GPUs and workers of `config`, and returns whether the run uses GPUs. By default it does
// if there are any. A usage error if it cannot use the GPUs that the flags ask for.
Result<bool> choose_gpu_seats(const GpuFlags& flags, RunConfig& config,
                              std::vector<std::string>& notes);

// A usage error if the mode needs two GPUs, one for each lane, and the run has fewer.
Status check_two_gpus(const RunConfig& config);

}  // namespace assay
