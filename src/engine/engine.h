#pragma once

// One run of API cases: plan ─▶ slots ─▶ verdicts ─▶ store.

#include "engine/run_config.h"

namespace assay {

// Runs all cases of the configuration that have not finished in its folder yet. Blocks until they
// have, or until SIGINT or SIGTERM: the first lets running cases end within 10 s and keeps
// everything, the second ends at once. Whatever happens to any process, what was recorded stays.
Result<RunSummary> run_engine(const RunConfig& config, const RunObserver& observer);

}  // namespace assay
