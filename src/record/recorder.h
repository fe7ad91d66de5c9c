#pragma once

// What runs inside a recorded process: takes ranges, steps and GPU work from any thread and writes
// them to one file a process (timeline/importers/recording_format.h).
//
// Memory is bounded: one block waits for the file, and whoever fills it writes it. A process that
// is killed loses what came within the last kFlushEvery. A forked child gets a file of its own.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "timeline/importers/recording_format.h"

namespace assay::record {

using timeline::Nanos;

// What to record, as `assay timeline record` puts it into the environment.
struct RecorderOptions {
  std::filesystem::path folder;                                        // ASSAY_RECORD_DIR
  std::int64_t first_step = std::numeric_limits<std::int64_t>::min();  // ASSAY_RECORD_STEPS=3:6
  std::int64_t end_step =
      std::numeric_limits<std::int64_t>::max();  // (up to, not with, the second)
  Nanos first_time = 0;                          // ASSAY_RECORD_SECONDS=10:20 after the start
  Nanos end_time = std::numeric_limits<Nanos>::max();
  bool waiting = false;  // ASSAY_RECORD_PAUSED=1: until start()

  // Nothing when ASSAY_RECORD_DIR is not set.
  static std::optional<RecorderOptions> from_environment();
};

// Nanoseconds since 1970.
Nanos now();

// Told of recorded ranges, on the thread that runs them; the GPU's side hangs its work on them.
class RangeObserver {
 public:
  virtual ~RangeObserver() = default;
  virtual void range_begun(std::string_view name, std::int32_t micro_batch) = 0;
  virtual void range_ended() = 0;
};

class Recorder {
 public:
  explicit Recorder(RecorderOptions options);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder();

  // The recorder of this process, or null when recording was not asked for.
  static Recorder* instance();

  // Ranges nest by thread. One that is named by a number is a step, as the NVTX hook of Paddle
  // names them. A range begun while recording is off is not recorded.
  void begin_range(std::string_view name, std::int32_t micro_batch = timeline::kNone);
  // The same; "forward@3" names the job forward of micro batch 3.
  void begin_job(std::string_view text);
  void end_range();

  // A step begins; the one before it ends.
  void begin_step(std::int64_t number);
  void start() { paused_ = false; }
  void stop() { paused_ = true; }
  bool active() const;

  // The observer outlives the recorder.
  void observe(RangeObserver* observer) { observer_ = observer; }

  // Work of a GPU, from any thread.
  void add(const timeline::RecordedSlice& slice);
  void flush();

 private:
  static constexpr std::chrono::milliseconds kFlushEvery{500};

  void add_locked(const timeline::RecordedSlice& slice);
  void end_step_locked(Nanos time);
  void write_block_locked();
  bool open_file_locked();

  const RecorderOptions options_;
  const Nanos began_;
  std::atomic<bool> paused_;
  std::atomic<RangeObserver*> observer_{nullptr};
  std::atomic<std::int64_t> step_{timeline::kNone};
  std::mutex mutex_;
  timeline::RecordingEncoder encoder_;
  Fd file_;
  int pid_ = 0;
  bool broken_ = false;  // the disk refused: nothing more is written
  std::uint64_t lost_ = 0;
  Nanos step_begin_ = 0;
  Nanos last_flush_ = 0;
};

}  // namespace assay::record
