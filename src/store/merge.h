#pragma once

// Many runs become one: those of machines that each ran a part of a corpus.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "store/store.h"

namespace assay {

// A case that two runs came to different ends with. Where one of them has failed, that is kept.
struct MergeConflict {
  std::string text;
  Outcome kept;
  std::string kept_from;  // the run
  Outcome other;
  std::string other_from;
};

struct MergeSummary {
  std::uint64_t cases = 0;       // finished, each counted once
  std::uint64_t repeated = 0;    // finished in another run as well
  std::uint64_t unfinished = 0;  // planned, and finished in none
  std::vector<MergeConflict> conflicts;
  std::vector<std::string> missing_shards;  // "3/8"
};

// Makes the run `out` of these. Refuses runs that were not begun alike, and an `out` that is there.
Result<MergeSummary> merge_runs(const std::filesystem::path& out,
                                std::span<const std::filesystem::path> runs);

}  // namespace assay
