#pragma once

// A folder of job logs as one trace: which logs there are, and what one pass over them tells:
// reports, steps, and the slices in order.

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
  std::vector<int> devices;  // empty: every workerlog.K that there is
  bool multi_machine = false;
};

// workerlog.K of the folder, or of each of its machine* folders (ordered by number, then name).
// A usage error names a log that is missing.
Result<std::vector<JobLogFile>> find_job_logs(const JobLogOptions& options);

// Which jobs become slices: Paddle's script leaves out receives before a forward and sends after
// a backward, since they overlap the jobs beside them; the analysis wants them.
enum class JobFilter : std::uint8_t { as_paddle, all };

// What one pass over the logs tells.
struct JobLogSurvey {
  std::vector<FileReport> files;                     // of each log, in the order given
  std::vector<std::unique_ptr<SliceSource>> slices;  // of log i on track i + 1
  std::vector<Step> steps;                           // with the clocks related by `offsets`
  std::vector<std::string> notes;
};

struct SurveyOptions {
  JobFilter filter = JobFilter::as_paddle;
  std::filesystem::path scratch;  // slices of large logs wait here in an unlinked file
};

// Steps come from the lines of the NVTX hook where a log has them; otherwise one begins wherever
// the log's first type of job runs micro batch 0, numbered from the schedule window's start. The
// times of log i move by offsets[i].
Result<JobLogSurvey> survey_job_logs(std::span<const JobLogFile> logs,
                                     std::span<const Nanos> offsets, const SurveyOptions& options,
                                     Strings& strings);

// Track 0 is the Step row; log i is track i + 1.
std::vector<Track> job_log_tracks(std::span<const JobLogFile> logs);
std::vector<Slice> step_slices(std::span<const Step> steps, Strings& strings);

}  // namespace assay::timeline
