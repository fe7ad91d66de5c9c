#pragma once

#include "base/result.h"
#include "chain/plan/plan_builder.h"

namespace assay::chain::plan {

// Adds the stages of a train_infer file as TIPC's development documents describe them: for each
// entry of gpu_list, each auto_cast and each trainer a training, an evaluation, an export, and the
// matrix of inferences. It knows the layout of 32 lines and the longer one, and runs no script of
// the suite.
Status add_standard_chain(PlanBuilder& builder);

}  // namespace assay::chain::plan
