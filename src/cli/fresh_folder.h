#pragma once

// A run that fails to start leaves no folder behind.

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"

namespace assay {

class FreshFolder {
 public:
  // Remembers which of `folder` and its parents exist now.
  explicit FreshFolder(std::filesystem::path folder);

  // Removes the folder, and each parent that is empty, if they did not exist then; from an older
  // folder what a run makes in it first. The folder and its lanes stay if `error` names a file in
  // them: that log explains the error.
  void discard(const Error& error) const;

 private:
  std::filesystem::path folder_;
  std::vector<std::filesystem::path> missing_;  // the folder first, then its parents
  std::vector<std::filesystem::path> inside_;   // that an older folder lacked
};

// run_engine() on a folder that is discarded when the run fails before it has a plan.
Result<RunSummary> run_in(const FreshFolder& folder, const RunConfig& config, RunObserver observer);

}  // namespace assay
