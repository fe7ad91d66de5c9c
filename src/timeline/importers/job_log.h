#pragma once

// The job lines that a pipeline-parallel Paddle run prints, one log a GPU:
//   … Profiler Info: Job (4), type = forward, micro_batch_id = 2, job_start_time =
//   1700000000000.771484,
//     job_end_time = 1700000000005.200439                       (one line; times in milliseconds)
//   Schedule Profiler start at step 3 and end at step 6          (the profiled window of steps)
//   NVTX range push: 7, time: 1700000000000.123                  (step 7 begins)
//   NVTX range pop, time: 1700000000061.456
// Other text may precede, follow and separate them.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "timeline/model.h"

namespace assay::timeline {

// One record of the log. `type` is valid until the next call of next().
struct JobLogRecord {
  enum class What : std::uint8_t { job, window, push, pop };
  What what = What::job;
  std::int64_t number = 0;       // job: its number; window: first step; push: step
  std::string_view type;         // job: its type
  std::int64_t micro_batch = 0;  // job
  Nanos begin = 0;               // job: start; push, pop: time
  Nanos end = 0;                 // job
};

// Reads a log of any size through a buffer that fits a core's cache. Counts unusable records in
// `report`.
class JobLogReader {
 public:
  static constexpr std::size_t kBufferBytes = 256U << 10U;
  static constexpr std::size_t kMaxRecordBytes = 4096;

  static Result<JobLogReader> open(const std::filesystem::path& path);
  // False at the end of the file. Returned records are well-formed: a job has begin <= end.
  Result<bool> next(JobLogRecord& record);

  FileReport& report() { return report_; }

 private:
  JobLogReader(Fd fd, std::string path, bool sparse);
  Result<bool> refill();
  void skip_hole();
  bool parse_here(JobLogRecord& record);
  void judge_failure(const char* stop);
  void judge_job(const JobLogRecord& job);

  Fd fd_;
  bool sparse_;
  std::vector<char> buffer_;
  const char* cursor_;
  const char* limit_;
  bool at_end_ = false;
  Nanos last_begin_ = std::numeric_limits<Nanos>::min();
  FileReport report_;
};

// The first possible start of "Profiler " or "NVTX range p" in [begin, end), or `end`.
const char* find_record_mark(const char* begin, const char* end);

// Converts decimal milliseconds ("1700000000000.771484") to nanoseconds, dropping further digits.
// Advances `cursor`. Nothing for another text or for overflow.
std::optional<Nanos> parse_milliseconds(const char*& cursor, const char* end);

}  // namespace assay::timeline
