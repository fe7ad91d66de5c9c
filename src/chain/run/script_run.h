#pragma once

#include "base/result.h"
#include "chain/plan/plan.h"
#include "chain/run/runner.h"
#include "chain/script/script_plan.h"

namespace assay::chain::run {

// Runs a suite's own script. The script decides which commands run and when; each command is a
// stage with limits, a guard, a log of its own, and a verdict. The script sees the command's output
// and exit code. `plan` is the rehearsal's: it names the stages to expect, and -k picks among them.
Result<RunResult> run_script(const script::Script& script, const plan::Plan& plan,
                             const RunOptions& options);

}  // namespace assay::chain::run
