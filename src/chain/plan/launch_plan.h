#pragma once

#include "base/result.h"
#include "chain/params/launch_script.h"
#include "chain/plan/plan.h"

namespace assay::chain::plan {

// Plans a launching script (params/launch_script.h): preparation, trainings, speed record. Logs and
// records go to the folders in TRAIN_LOG_DIR, PROFILING_LOG_DIR and LOG_PATH_INDEX_DIR, else to the
// plan's. A mode other than benchmark_train is an error.
Result<Plan> make_launch_plan(const params::LaunchScript& script, const std::string& mode,
                              const PlanOptions& options);

// A summary of the script for the user: model, devices, keyword, limits.
std::string describe_launch(const params::LaunchScript& script);

}  // namespace assay::chain::plan
