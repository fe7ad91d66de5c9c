#pragma once

// The little that the chain asks of NVIDIA's management library, which is loaded when first needed.
// On a machine without it every answer is "nothing seen".

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

namespace assay::chain::stage {

struct GpuUse {
  double memory_mb = 0;  // held by these processes, all GPUs together
  double percent = 0;    // utilisation of the busiest GPU that they are on
  bool seen = false;
};

// Memory in use on each GPU, in NVML's order.
std::vector<double> nvml_used_mb();

// What a family of processes uses. Inside a container NVML counts processes by the host's numbers,
// which are not ours: then it is what each GPU holds more than `before` the family was started.
GpuUse nvml_use_of(std::span<const pid_t> processes, std::span<const double> before);

// Names of the GPUs of this machine, in NVML's order.
std::vector<std::string> nvml_gpu_names();

}  // namespace assay::chain::stage
