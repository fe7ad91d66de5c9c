#pragma once

// Queries of NVIDIA's management library (NVML), which is loaded on first use. On a machine without
// NVML the results are empty.

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace assay {

struct GpuUse {
  double memory_mb = 0;  // of these processes, summed over all GPUs
  double percent = 0;    // utilisation of the busiest GPU that they use
  bool seen = false;
};

// Memory in use on each GPU, in NVML's order.
std::vector<double> nvml_used_mb();

// GPU use of a process and its descendants. In a container NVML reports the host's process ids,
// which match none of ours. The memory is then the increase since `before` (nvml_used_mb() from the
// time before the start).
GpuUse nvml_use_of(std::span<const pid_t> processes, std::span<const double> before);

// Names of the GPUs of this machine, in NVML's order.
std::vector<std::string> nvml_gpu_names();

// A GPU of this machine. NVML numbers GPUs by PCI address, as nvidia-smi does.
struct GpuInfo {
  int number = 0;
  std::string name;
  std::string uuid;  // "GPU-…"
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
};
std::vector<GpuInfo> nvml_gpus();

struct GpuDriver {
  bool present = false;
  std::string version;     // "580.159.04"; empty if unknown
  std::uint32_t cuda = 0;  // the newest supported CUDA version (13000 for 13.0); 0 if unknown
};
GpuDriver nvml_driver();

}  // namespace assay
