#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "chain/results/chain_store.h"

namespace assay::chain::results {

// Returns a self-contained HTML page of the store's latest run: stages, AutoLog fields, and plots
// of loss, ips and memory. It shows each stage's share of `budget_seconds`. While the run is not
// finished, the page reloads itself.
Result<std::string> chain_report(ChainStore& store, double budget_seconds);

// The style sheet of assay's pages about chains.
std::string_view page_style();

}  // namespace assay::chain::results
