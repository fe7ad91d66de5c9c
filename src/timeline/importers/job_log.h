#pragma once

// The job lines that a pipeline-parallel Paddle run prints, one log a GPU:
//   … Profiler Info: Job (4), type = forward, micro_batch_id = 2, job_start_time =
//   1700000000000.771484,
//     job_end_time = 1700000000005.200439                       (one line; times in milliseconds)
//   Schedule Profiler start at step 3 and end at step 6          (the profiled window of steps)
//   NVTX range push: 7, time: 1700000000000.123                  (step 7 begins)
//   NVTX range pop, time: 1700000000061.456
// Anything may stand before, between and behind them.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "timeline/model.h"

namespace assay::timeline {

// One record of the log. `type` and `name` are valid until the next call of next().
struct JobLogRecord {
  enum class What : std::uint8_t { job, window, push, pop };
  What what = What::job;
  std::int64_t number = 0;       // job: its number; window: first step; push: step
  std::string_view type;         // job: its type
  std::int64_t micro_batch = 0;  // job
  Nanos begin = 0;               // job: start; push, pop: time
  Nanos end = 0;                 // job
};

// Reads a log of any size through a buffer of 256 KiB (which stays in a core's cache). Counts in
// `report` what it could not take.
class JobLogReader {
 public:
  static constexpr std::size_t kBufferBytes = 256U << 10U;
  static constexpr std::size_t kMaxRecordBytes = 4096;

  static Result<JobLogReader> open(const std::filesystem::path& path);
  // False at the end of the file. What the caller reads is well-formed; a job has begin <= end.
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

// The first place in [begin, end) where "Profiler " or "NVTX range p" may begin, or end.
const char* find_record_mark(const char* begin, const char* end);

// Milliseconds in decimal, exact to the nanosecond (further digits are cut):
// "1700000000000.771484". Advances `cursor`; nothing when there is no such number or it does not
// fit 64 bits.
std::optional<Nanos> parse_milliseconds(const char*& cursor, const char* end);

}  // namespace assay::timeline
