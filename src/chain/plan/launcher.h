#pragma once

// How a training is started on one gpu_list entry: on many GPUs, on many machines, as servers and
// trainers.

#include <string>
#include <string_view>

#include "chain/params/gpu_entry.h"
#include "chain/plan/plan.h"

namespace assay::chain::plan {

// Whether it trains on the CPU; --fleet-on-cpu makes many machines do so.
bool trains_on_cpu(const params::GpuEntry& entry, const PlanOptions& options);

// `-m paddle.distributed.launch … ` with a blank behind it, or nothing for one device. `devices` is
// the launcher's flag for the GPUs, as the suite writes it.
std::string launcher(const params::GpuEntry& entry, std::string_view devices,
                     const PlanOptions& options);

}  // namespace assay::chain::plan
