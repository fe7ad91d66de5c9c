#pragma once

#include <string>

#include "base/result.h"
#include "chain/params/params.h"
#include "chain/plan/plan.h"

namespace assay::chain::plan {

// Plans a params file in one of its modes. It is an error if the kind cannot run the mode, or if no
// stage is left.
Result<Plan> make_plan(const params::Params& params, const std::string& mode,
                       const PlanOptions& options);

}  // namespace assay::chain::plan
