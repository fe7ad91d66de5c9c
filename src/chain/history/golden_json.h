#pragma once

// Judgements of golden records as JSON.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "chain/history/golden.h"
#include "chain/results/chain_store.h"

namespace assay::chain::history {

// {"metric": "train: loss", "state": "good", "value": …, "golden": …, "tolerance": …, …}
nlohmann::json json_of(const MetricJudgement& one, const Golden& golden);

// The store's latest run beside its record in `folder`: {"file": "…", "runs": 9, "metrics": […]}.
// A run that is not in the record is judged as its next night. "" without a record, or if the run
// did not pass.
Result<std::string> beside_golden(results::ChainStore& store, const std::filesystem::path& folder);

}  // namespace assay::chain::history
