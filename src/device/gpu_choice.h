#pragma once

// Which GPUs a run sits on: from the flags, from what the machine has, and from what
// CUDA_VISIBLE_DEVICES lets its processes see.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/nvml.h"

namespace assay {

struct GpuWish {
  int count = -1;   // --num_gpus; -1: all that there are
  std::string ids;  // --gpu_ids: "0,2,4-7", as nvidia-smi counts; empty or "-1": any
};

struct ChosenGpu {
  GpuInfo info;
  int ordinal = 0;  // as CUDA counts in our processes, which see them in the order of the bus
};

// The numbers of "0,2,4-7", rising; nothing for "" and "-1", which mean any.
Result<std::vector<int>> parse_gpu_ids(std::string_view text);

// `visible`: the value of CUDA_VISIBLE_DEVICES, if it is set. An error says what contradicts what.
Result<std::vector<ChosenGpu>> choose_gpus(const std::vector<GpuInfo>& present, const GpuWish& wish,
                                           const std::optional<std::string>& visible);

// Whether a driver can run a plug-in that needs `cuda` (13000); the error says what to do.
Status check_driver(const GpuDriver& driver, std::uint32_t cuda, std::string_view plugin);

}  // namespace assay
