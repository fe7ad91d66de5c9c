#pragma once

// Reads what a run measured from its store, and adds it to the golden file of its model and device.

#include <filesystem>
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

}  // namespace assay::chain::history
