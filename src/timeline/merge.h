#pragma once

// `assay timeline merge`: one trace from the logs of a run, in three formats.

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

// Streams the logs into the output files; an output with an empty path is not written.
Result<MergeResult> merge_job_logs(const JobLogOptions& options, const ClockOptions& clocks,
                                   const OutputPaths& outputs);

// Writes a trace in memory the same way.
Result<MergeResult> write_trace(Trace& trace, const OutputPaths& outputs);

// The logs as a trace in memory, with every job, for the analysis. At most `max_slices`.
Result<Trace> load_job_logs(const JobLogOptions& options, const ClockOptions& clocks,
                            std::size_t max_slices = 20'000'000);

// A line or more for each file: what was read, kept and dropped.
std::string describe(std::span<const FileReport> files, std::span<const std::string> notes);

}  // namespace assay::timeline
