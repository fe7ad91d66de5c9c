#pragma once

// One run of API cases: plan ─▶ slots ─▶ verdicts ─▶ store.

#include "engine/run_config.h"
#include "verdict/policy.h"

namespace assay {

// What the tables' policies.toml says, for a run with these tolerances.
Result<Policies> load_policies(const wire::CaseSettingsT& settings);

struct PlanSummary {
  Totals totals;
  std::vector<InvalidLine> first_invalid;  // a few, to be shown
  std::uint64_t added = 0;                 // cases that the run did not know yet
};

// Loads the cases of the configuration into its store, for others to work on.
Result<PlanSummary> plan_run(const RunConfig& config);

// Runs all cases of the configuration that have not finished in its folder yet. Blocks until they
// have, or until SIGINT or SIGTERM: the first lets running cases end within 10 s and keeps
// everything, the second ends at once. Whatever happens to any process, what was recorded stays. A
// configuration that names a database and no cases works on those that are there.
Result<RunSummary> run_engine(const RunConfig& config, const RunObserver& observer);

// The same with another store; the folder is for what lanes and slots write.
Result<RunSummary> run_engine(const RunConfig& config, Store& store, const RunObserver& observer);

}  // namespace assay
