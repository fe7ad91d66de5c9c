#pragma once

// The plan of a params file in one of its modes.

#include <string>

#include "base/result.h"
#include "chain/params/params.h"
#include "chain/plan/plan.h"

namespace assay::chain::plan {

// Fails when the kind cannot run the mode, or nothing is left to run.
Result<Plan> make_plan(const params::Params& params, const std::string& mode,
                       const PlanOptions& options);

}  // namespace assay::chain::plan
