#pragma once

// A plan as --dry-run prints it.

#include <string>

#include "chain/plan/plan.h"

namespace assay::chain::plan {

// For people: each stage's name, what it needs, and its command line as a shell would read it.
std::string describe_plan(const Plan& plan);

// For programs: one JSON object a line, {"v":1,"stage","kind","argv","env","log","needs",…}.
std::string plan_json_lines(const Plan& plan);

}  // namespace assay::chain::plan
