#pragma once

// Traces of many processes as one: folders are searched, ranks told apart, files read side by side.

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "timeline/analysis/annotated_jobs.h"
#include "timeline/importers/importer.h"
#include "timeline/model.h"

namespace assay::timeline {

struct LoadOptions {
  ImportOptions import;
  std::vector<std::int32_t> ranks;  // of the files in order, for those that do not say theirs
  JobNames job_names;               // how ranges are named that are pipeline jobs
  unsigned threads = 0;             // 0: as many as the machine has
};

// The traces among `paths`: files as they are, and those in folders (and below), in the order of
// their names, numbers by value. What a folder holds beside traces becomes a note.
Result<std::vector<std::filesystem::path>> find_traces(std::span<const std::filesystem::path> paths,
                                                       std::vector<std::string>& notes);

// The number behind the last "rank" of a path's file name, else of its folder's ("rank-3.json",
// "rank_3/trace.json", "Rank3"); kNone where there is none.
std::int32_t rank_in_name(const std::filesystem::path& path);

Result<Trace> load_traces(std::span<const std::filesystem::path> paths, const LoadOptions& options);

}  // namespace assay::timeline
