#pragma once

// What trains on an entry of gpu_list.

#include <string>

#include "base/result.h"
#include "chain/params/gpu_entry.h"
#include "chain/plan/plan.h"

namespace assay::chain::plan {

struct Devices {
  params::GpuEntry entry;
  std::string launch;   // words of the launcher, with a blank behind; "": none
  std::string device;   // of the training
  std::string visible;  // CUDA_VISIBLE_DEVICES of the training; "-": no GPU, "": as it is
  std::string first;    // the same for one of the GPUs
  std::string first_device;
  std::string servers;  // part of the name in Parameter Server mode
  std::size_t nodes() const { return std::max<std::size_t>(1, entry.hosts.size()); }
};

// Reads an entry of gpu_list.
Result<Devices> devices_of(const std::string& text, const PlanOptions& options);

}  // namespace assay::chain::plan
