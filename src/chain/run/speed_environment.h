#pragma once

#include <string>
#include <vector>

namespace assay::chain::run {

// The environment that the suites' benchmark_train.sh gives to analysis.py, as "NAME=value":
// model_branch and model_commit (by git, of `checkout`), frame_version (of the Paddle beside
// `interpreter`), frame_commit (printed by the interpreter) and model_run_time (whole seconds).
// Leaves out variables that are set already and values that cannot be found.
std::vector<std::string> speed_environment(const std::string& checkout,
                                           const std::string& interpreter,
                                           const std::string& frame_commit, double train_seconds);

}  // namespace assay::chain::run
