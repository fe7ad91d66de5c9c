#pragma once

// `assay timeline merge`: writes one trace in three formats.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "timeline/clocks.h"
#include "timeline/importers/job_logs.h"
#include "timeline/model.h"

namespace assay::timeline {

struct OutputPaths {
  std::filesystem::path chrome;
  std::filesystem::path perfetto_json;
  std::filesystem::path perfetto_binary;
  // pipeline_profile.json, pipeline_profile_perfetto.json, pipeline_profile.perfetto-trace
  static OutputPaths in(const std::filesystem::path& folder);
};

struct MergeResult {
  std::vector<FileReport> files;
  std::vector<std::string> notes;
  std::uint64_t slices = 0;
};

// Streams the logs into the outputs with a path. Memory does not grow with the logs.
Result<MergeResult> merge_job_logs(const JobLogOptions& options, const ClockOptions& clocks,
                                   const OutputPaths& outputs);

// Writes a trace in memory to the outputs with a path.
Result<MergeResult> write_trace(Trace& trace, const OutputPaths& outputs);

// Loads the logs into memory for the analysis; drops jobs beyond `max_slices`.
Result<Trace> load_job_logs(const JobLogOptions& options, const ClockOptions& clocks,
                            std::size_t max_slices = 20'000'000);

// At least one line for each file: records read, kept and dropped.
std::string describe(std::span<const FileReport> files, std::span<const std::string> notes);

}  // namespace assay::timeline
