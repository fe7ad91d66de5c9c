#pragma once

// One run of API cases: plan ─▶ slots ─▶ verdicts ─▶ store.

#include "engine/run_config.h"
#include "verdict/policy.h"

namespace assay {

// The policies of the tables' policies.toml, for a run with these tolerances.
Result<Policies> load_policies(const wire::CaseSettingsT& settings);

struct PlanSummary {
  Totals totals;
  std::vector<InvalidLine> first_invalid;  // some of them, to show
  std::uint64_t added = 0;                 // cases that were new to the run
};

// Loads the cases of the configuration into its store, for other processes to run.
Result<PlanSummary> plan_run(const RunConfig& config);

// Runs all unfinished cases of the configuration. Blocks until they have finished, or until SIGINT
// or SIGTERM: the first lets running cases end within 10 s, the second ends at once. Recorded
// verdicts survive the end of any process. A configuration that names a database and no cases runs
// the cases of the database.
Result<RunSummary> run_engine(const RunConfig& config, const RunObserver& observer);

// Runs what `claims` gives, without a plan and a store; lanes and slots write to the folder.
Result<RunEnding> run_claims(const RunConfig& config, RunClaims& claims,
                             const RunObserver& observer);

}  // namespace assay
