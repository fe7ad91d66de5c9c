#pragma once

#include <string>
#include <vector>

#include "chain/plan/plan.h"

namespace assay::chain::script {

// What looks wrong in the commands that a script starts: a heading of the params file, or a whole
// list of `mode=value`, that the script has read as a value. One text for each stage.
std::vector<std::string> doubts_about(const plan::Plan& plan);

}  // namespace assay::chain::script
