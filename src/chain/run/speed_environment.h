#pragma once

// What the suites' benchmark_train.sh tells its analysis.py by the environment.

#include <string>
#include <vector>

namespace assay::chain::run {

// "NAME=value" of model_branch and model_commit (by git, of the folder `checkout`), frame_version
// (of the Paddle beside `interpreter`), frame_commit (what the interpreter says, once) and
// model_run_time (whole seconds). What our own environment has already is left to it, and what
// cannot be found is left out.
std::vector<std::string> speed_environment(const std::string& checkout,
                                           const std::string& interpreter,
                                           const std::string& frame_commit, double train_seconds);

}  // namespace assay::chain::run
