#pragma once

// Reads a folder of job logs in one pass: reports, steps and sorted slices.

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "timeline/importers/job_log.h"
#include "timeline/slice_source.h"

namespace assay::timeline {

struct JobLogFile {
  std::filesystem::path path;
  std::string machine;  // "0" of the folder machine0; empty without --multi_machine
  int device = 0;
};

struct JobLogOptions {
  std::filesystem::path log_dir;
  std::vector<int> devices;  // empty: every workerlog.K
  bool multi_machine = false;
};

// The logs of the folder, or of each of its machine* folders ordered by number, then name. A usage
// error names a missing log.
Result<std::vector<JobLogFile>> find_job_logs(const JobLogOptions& options);

// Which jobs become slices. Paddle's script leaves out receives before a forward and sends after a
// backward, because they overlap neighbouring jobs. The analysis needs them.
enum class JobFilter : std::uint8_t { as_paddle, all };

struct JobLogSurvey {
  std::vector<FileReport> files;                     // by log
  std::vector<std::unique_ptr<SliceSource>> slices;  // of log i on track i + 1
  std::vector<Step> steps;                           // on the reference clock
  std::vector<std::string> notes;
};

struct SurveyOptions {
  JobFilter filter = JobFilter::as_paddle;
  std::filesystem::path scratch;  // folder of the nameless file for the slices of large logs
};

// Reads the logs; adds offsets[i] to the times of log i. Steps come from the lines of the NVTX
// hook. In a log without them, a step begins where the first type of job runs micro batch 0,
// numbered from the start of the schedule window.
Result<JobLogSurvey> survey_job_logs(std::span<const JobLogFile> logs,
                                     std::span<const Nanos> offsets, const SurveyOptions& options,
                                     Strings& strings);

// Track 0 is the Step row; log i is track i + 1.
std::vector<Track> job_log_tracks(std::span<const JobLogFile> logs);
std::vector<Slice> step_slices(std::span<const Step> steps, Strings& strings);

}  // namespace assay::timeline
