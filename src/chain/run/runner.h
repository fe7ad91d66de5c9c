#pragma once

// Runs a plan: stages in order, several at a time where devices allow, each only when what it needs
// was made by this run; results to the store and to TIPC's results log.

#include <cstdio>
#include <string>
#include <vector>

#include "base/result.h"
#include "chain/fleet/fleet.h"
#include "chain/plan/plan.h"
#include "chain/stage/stage_run.h"

namespace assay::chain::run {

struct RunOptions {
  stage::Limits limits{stage::Seconds(900), stage::Seconds(300)};
  bool own_idle_limit = false;       // limits.idle counts also where a stage has a limit of its own
  std::size_t jobs = 1;              // stages at a time
  std::vector<std::string> stop_on;  // alarms (stage/monitor.h) that end a training
  bool resume = false;  // keep what an earlier run of this store has passed and left unchanged
  stage::Seconds budget{900};      // for the whole model; told, not enforced
  stage::Seconds server_ready{5};  // a server that lives so long is taken as up
  std::string page_path;  // the report's page, written anew while the run goes on; empty: none
  std::string params_path;
  std::string store_path;     // empty: "chain.db" in the plan's folder
  fleet::FleetOptions fleet;  // for stages on many machines
  std::string self;           // our program, which runs again as the fleet's driver and nodes
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

// An error is the engine's own: the store or the results log cannot be written. Everything that
// stages do wrong is in the result.
Result<RunResult> run_plan(const plan::Plan& plan, const RunOptions& options);

// "stage seconds share", a line a stage, and the sum against the budget.
std::string time_table(const RunResult& result, stage::Seconds budget);

}  // namespace assay::chain::run
