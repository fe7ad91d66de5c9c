#pragma once

// The command that starts a training on a gpu_list entry.

#include <string>
#include <string_view>

#include "chain/params/gpu_entry.h"
#include "chain/plan/plan.h"

namespace assay::chain::plan {

// True if the entry trains on the CPU; --fleet-on-cpu makes many machines do so.
bool trains_on_cpu(const params::GpuEntry& entry, const PlanOptions& options);

// Returns `-m paddle.distributed.launch … ` with a final blank, or "" for one device. `devices` is
// the launcher's flag for GPUs as the suite writes it.
std::string launcher(const params::GpuEntry& entry, std::string_view devices,
                     const PlanOptions& options);

}  // namespace assay::chain::plan
