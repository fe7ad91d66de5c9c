#pragma once

// Reads what a run measured from its store, and adds it to the golden file of its model and device.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "chain/history/golden.h"
#include "chain/results/chain_store.h"

namespace assay::chain::history {

struct RecordOptions {
  Purpose purpose = Purpose::nightly;
  std::string build;  // "": the framework beside the interpreter, by name and version
  bool accept = false;
};

// Returns the latest run of a store as a golden record with one run: losses by step, mean speed,
// time of an inference, peak memory, predictions by image. A run that did not pass is an error.
Result<Golden> measured(results::ChainStore& store, const RecordOptions& options);

// Adds the run to its file in `folder`. Returns the whole record.
Result<Golden> add_to(const std::filesystem::path& folder, Golden run);

// Reads a golden file.
Result<Golden> load_golden(const std::filesystem::path& path);

// {"metric": "train: loss", "state": "good", "value": …, "golden": …, "tolerance": …, …}
nlohmann::json json_of(const MetricJudgement& one, const Golden& golden);

// The store's latest run beside its record in `folder`: {"file": "…", "runs": 9, "metrics": […]}.
// A run that is not in the record is judged as its next night. "" without a record, or if the run
// did not pass.
Result<std::string> beside_golden(results::ChainStore& store, const std::filesystem::path& folder);

}  // namespace assay::chain::history
