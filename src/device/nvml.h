#pragma once

// The little that is asked of NVIDIA's management library, which is loaded when first needed. On a
// machine without it every answer is "nothing seen".

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace assay {

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

// A GPU of this machine. NVML counts them by their place on the bus, as nvidia-smi does.
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
  std::string version;     // "580.159.04"; empty where NVML does not say
  std::uint32_t cuda = 0;  // the newest CUDA that it runs: 13000; 0 where NVML does not say
};
GpuDriver nvml_driver();

}  // namespace assay
