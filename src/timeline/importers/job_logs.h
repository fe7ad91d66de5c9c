#pragma once

// Reads a folder of job logs in one pass: reports, steps and slices.

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "timeline/importers/job_log.h"
#include "timeline/model.h"

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
  std::vector<FileReport> files;  // by log
  std::vector<Step> steps;        // on the reference clock
  std::vector<std::string> notes;
};

// Takes the slices of a log in their order; log i is track i + 1.
using TakeSlice = std::function<Status(const Slice&)>;

// Reads the logs; adds offsets[i] to the times of log i. `begin_log` returns who takes the slices
// of the log that is read next. Steps come from the lines of the NVTX hook. In a log without them,
// a step begins where the first type of job runs micro batch 0, numbered from the start of the
// schedule window.
Result<JobLogSurvey> survey_job_logs(std::span<const JobLogFile> logs,
                                     std::span<const Nanos> offsets, JobFilter filter,
                                     Strings& strings,
                                     const std::function<Result<TakeSlice>()>& begin_log);

// Track 0 is the Step row; log i is track i + 1.
std::vector<Track> job_log_tracks(std::span<const JobLogFile> logs);
std::vector<Slice> step_slices(std::span<const Step> steps, Strings& strings);

}  // namespace assay::timeline
