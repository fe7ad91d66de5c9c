#pragma once

// Seats on GPUs: which GPUs a run takes, how many workers sit on each, which lanes they hold.

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
  double required_gib = 0;  // that each worker must have on its GPU
  bool test_cpu = false;
  bool mps = true;
};

// Whether the run takes GPUs: asked for, or there and not declined. An error where those that were
// asked for cannot be had, or what they need is missing.
Result<bool> choose_gpu_seats(const GpuFlags& flags, RunConfig& config,
                              std::vector<std::string>& notes);

// An error where the mode has each lane on a GPU of its own, and the seats are not on two.
Status check_two_gpus(const RunConfig& config);

}  // namespace assay
