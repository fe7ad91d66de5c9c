#pragma once

#include <string>

#include "base/result.h"
#include "chain/results/chain_store.h"

namespace assay::chain::results {

// Returns a self-contained HTML page of the store's latest run: stages with command, log, files and
// resources, and curves of loss, speed and memory beside those of the last run that passed. It
// shows each stage's share of `budget_seconds`, and the run beside its golden record
// (history::beside_golden()). While the run is not finished, the page reloads itself.
Result<std::string> chain_report(ChainStore& store, double budget_seconds,
                                 const std::string& golden = {});

}  // namespace assay::chain::results
