#pragma once

// Formats a plan for --dry-run.

#include <string>

#include "chain/plan/plan.h"

namespace assay::chain::plan {

// For people: each stage's name, needs, and shell command.
std::string describe_plan(const Plan& plan);

// For programs: one JSON object per line, {"v":1,"stage","kind","argv","env","log","needs",…}.
std::string plan_json_lines(const Plan& plan);

}  // namespace assay::chain::plan
