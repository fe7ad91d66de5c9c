#pragma once

// Loads the traces of many processes as one: searches folders, assigns ranks, reads files in
// parallel.

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "timeline/analysis/job_names.h"
#include "timeline/clocks.h"
#include "timeline/importers/importer.h"
#include "timeline/model.h"

namespace assay::timeline {

struct LoadOptions {
  ImportOptions import;
  std::vector<std::int32_t> ranks;  // in the order of the files; replace the files' own
  JobNames job_names;               // the names of pipeline jobs
  unsigned threads = 0;             // 0: one for each core
  ClockOptions clocks;
};

struct FoundTraces {
  std::vector<std::filesystem::path> files;
  std::vector<FileReport> damaged;  // files named as traces that none can read
  std::vector<std::string> notes;
};

// The files of `paths`, and all traces in its folders and below. Paths are sorted by name, with
// numbers by value. Skipped files become notes.
Result<FoundTraces> find_traces(std::span<const std::filesystem::path> paths);

// The number after the last "rank" in the name of the file, else of its folder: "rank-3.json",
// "rank_3/trace.json", "Rank3". kNone without such a number.
std::int32_t rank_in_name(const std::filesystem::path& path);

// A usage error for two files that may be the same process.
Result<Trace> load_traces(std::span<const std::filesystem::path> paths, const LoadOptions& options);

}  // namespace assay::timeline
