#pragma once

// Merges runs of parts of a corpus, for example from several machines, into one run.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "store/store.h"

namespace assay {

// A case with different outcomes in two runs. A failure is kept rather than a pass.
struct MergeConflict {
  std::string text;
  Outcome kept;
  std::string kept_from;  // folder of the run
  Outcome other;
  std::string other_from;
};

struct MergeSummary {
  std::uint64_t cases = 0;       // finished, each counted once
  std::uint64_t repeated = 0;    // finished in more than one run
  std::uint64_t unfinished = 0;  // planned, but finished in none
  std::vector<MergeConflict> conflicts;
  std::vector<std::string> missing_shards;  // "3/8"
};

// Writes the run `out` from these runs. An error if their settings or versions differ, or if `out`
// already holds a run.
Result<MergeSummary> merge_runs(const std::filesystem::path& out,
                                std::span<const std::filesystem::path> runs);

}  // namespace assay
