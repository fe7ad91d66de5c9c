#pragma once

// Selects the GPUs of a run by the flags, the machine's GPUs and CUDA_VISIBLE_DEVICES.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "nvml/nvml.h"

namespace assay {

struct GpuWish {
  int count = -1;   // --num_gpus; -1: all GPUs
  std::string ids;  // --gpu_ids: "0,2,4-7", numbered as by nvidia-smi; empty or "-1": any
};

struct ChosenGpu {
  GpuInfo info;
  int ordinal = 0;  // CUDA's number in our processes, in the order of PCI addresses
};

// The numbers of "0,2,4-7" in ascending order; none for "" and "-1", which mean any GPU.
Result<std::vector<int>> parse_gpu_ids(std::string_view text);

// `visible` is the value of CUDA_VISIBLE_DEVICES, if it is set. The error names the two settings
// that contradict each other.
Result<std::vector<ChosenGpu>> choose_gpus(const std::vector<GpuInfo>& present, const GpuWish& wish,
                                           const std::optional<std::string>& visible);

// Whether the driver can run a plug-in that needs CUDA version `cuda` (13000 for 13.0). The error
// says what to do.
Status check_driver(const GpuDriver& driver, std::uint32_t cuda, std::string_view plugin);

}  // namespace assay
