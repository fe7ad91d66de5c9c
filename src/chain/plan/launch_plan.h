#pragma once

// The plan of a launching script (params/launch_script.h): what it prepares, its training, and the
// record of the speed.

#include "base/result.h"
#include "chain/params/launch_script.h"
#include "chain/plan/plan.h"

namespace assay::chain::plan {

// Logs and records go to the folders that TRAIN_LOG_DIR, PROFILING_LOG_DIR and LOG_PATH_INDEX_DIR
// name, else to the plan's own. Fails for a mode other than benchmark_train.
Result<Plan> make_launch_plan(const params::LaunchScript& script, const std::string& mode,
                              const PlanOptions& options);

// What the script says, line by line: model, devices, how the speed is found, what ends it.
std::string describe_launch(const params::LaunchScript& script);

}  // namespace assay::chain::plan
