#pragma once

// Runs a plan: stages in order, several at a time if devices allow. A stage runs only after this
// run made what it needs. Results go to the store and to TIPC's results log.

#include <cstdio>
#include <string>
#include <vector>

#include "base/result.h"
#include "chain/fleet/fleet.h"
#include "chain/plan/plan.h"
#include "chain/script/script_plan.h"
#include "chain/stage/stage_run.h"

namespace assay::chain::run {

struct RunOptions {
  stage::Limits limits{stage::Seconds(900), stage::Seconds(300)};
  bool lenient = false;              // a stage passes by exit code, files and device alone
  std::size_t jobs = 1;              // stages at a time
  std::vector<std::string> stop_on;  // alarms (stage/monitor.h) that end a training
  bool resume = false;  // keep stages that passed in an earlier run of this store and are unchanged
  stage::Seconds budget{900};  // of the whole model; reported, not enforced
  std::string page_path;       // the report's page, rewritten during the run; "": none
  std::string params_path;
  std::string store_path;     // "": "chain.db" in the plan's folder
  std::string rank_suffix;    // of a machine's own files in a shared folder; "": the first machine
  fleet::FleetOptions fleet;  // for stages on many machines
  // Of a suite's script:
  std::string shim;       // path of assay-shim
  std::string results;    // the folder that it writes to, for one run at a time; "": unknown
  std::string prepare;    // a script that runs before it: bash PREPARE FILE MODE
  std::string device;     // "xpu", "npu": stages need it
  bool filtered = false;  // run the stages of the plan alone (-k)
  std::string self;       // path of assay, which also runs as the fleet's driver and nodes
  std::FILE* progress = nullptr;
  bool live = false;
};

struct StageResult {
  std::string name;
  plan::StageKind kind = plan::StageKind::train;
  stage::Outcome outcome;
  bool kept = false;  // passed in an earlier run (resume)
};

struct RunResult {
  std::vector<StageResult> stages;
  double seconds = 0;
  bool interrupted = false;
  bool all_passed() const;
};

// Runs a plan. Failures of stages are in the result; an error means that the store or the results
// log cannot be written.
Result<RunResult> run_plan(const plan::Plan& plan, const RunOptions& options);

// Runs a suite's own script. The script decides which commands run and when; each command is a
// stage with limits, a guard, a log of its own, and a verdict. The script sees the command's output
// and exit code. `plan` is the rehearsal's: it names the stages to expect, and -k picks among them.
Result<RunResult> run_script(const script::Script& script, const plan::Plan& plan,
                             const RunOptions& options);

// A table "stage seconds share", one line per stage, with the sum against the budget.
std::string time_table(const RunResult& result, stage::Seconds budget);

}  // namespace assay::chain::run
