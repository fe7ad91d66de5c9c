#pragma once

#include <string>
#include <vector>

#include "chain/plan/plan.h"

namespace assay::chain::script {

// What looks wrong in the commands that a script starts: a heading of the params file, or a whole
// list of `mode=value`, that the script has read as a value. One text for each stage.
std::vector<std::string> doubts_about(const plan::Plan& plan);

// What the commands lack of the params file: the epochs or steps that a line gives for the mode,
// and what stands behind the first colon of a value. Suites' scripts are known to lose both.
std::vector<std::string> losses_of(const plan::Plan& plan, const std::string& params_text);

}  // namespace assay::chain::script
