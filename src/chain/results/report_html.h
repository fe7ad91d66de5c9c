#pragma once

// A chain's results as one HTML page that needs nothing else: stages, AutoLog fields, and plots of
// loss, ips and memory drawn as SVG.

#include <string>

#include "base/result.h"
#include "chain/results/chain_store.h"

namespace assay::chain::results {

// The page of the store's latest run, which asks to be loaded anew while that is not finished; each
// stage's share of a model's time budget is told.
Result<std::string> chain_report(ChainStore& store, double budget_seconds);

}  // namespace assay::chain::results
