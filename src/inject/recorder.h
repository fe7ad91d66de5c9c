#pragma once

// Inside a recorded process: ranges, steps and GPU work go to the process's file.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "base/fd.h"
#include "base/result.h"
#include "inject/ring.h"
#include "inject/triggers.h"
#include "timeline/importers/recording_format.h"

namespace assay::inject {

using timeline::Nanos;

// What to record, as `assay timeline record` puts it into the environment.
struct RecorderOptions {
  std::filesystem::path folder;                                        // ASSAY_RECORD_DIR
  std::int64_t first_step = std::numeric_limits<std::int64_t>::min();  // ASSAY_RECORD_STEPS=3:6
  std::int64_t end_step =
      std::numeric_limits<std::int64_t>::max();  // (up to, not with, the second)
  Nanos first_time = 0;                          // ASSAY_RECORD_SECONDS=10:20 after the start
  Nanos end_time = std::numeric_limits<Nanos>::max();
  bool waiting = false;    // ASSAY_RECORD_PAUSED=1: until start()
  std::int64_t every = 1;  // ASSAY_RECORD_EVERY=10: steps 0, 10, 20, …
  // Keep the last so much, and write it only when that is asked for: ASSAY_RECORD_RING=60
  // (seconds).
  Nanos ring = 0;
  Nanos hang = 0;   // ASSAY_RECORD_HANG=30: ask when the GPU does not get on for so many seconds
  double slow = 0;  // ASSAY_RECORD_SLOW=1.5: ask when a step takes so many times the median

  // Of this process in its job, as launchers tell it (RANK and WORLD_SIZE).
  std::int32_t rank = timeline::kNone;
  std::int32_t world_size = timeline::kNone;

  // Nothing when ASSAY_RECORD_DIR is not set.
  static std::optional<RecorderOptions> from_environment();
  bool by_step() const;
  bool by_time() const;
  bool keeps_ring() const { return ring > 0; }
};

// Nanoseconds since 1970.
Nanos now();

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
  void start() { set_paused(false); }
  void stop() { set_paused(true); }
  bool active() const;
  const RecorderOptions& options() const { return options_; }
  // Time since the recorder began, by which first_time and end_time are meant.
  Nanos age() const { return now() - began_; }

  // The id of the range that a launch on this thread belongs to: the thread's innermost one; else
  // the innermost of the only other thread that has any (PyTorch runs backward on a thread of its
  // own while the caller waits in its range); else the step's. 0: none.
  std::uint64_t current_range() const;

  // Called whenever active() may have changed, except by the passing of time.
  void on_change(std::function<void()> listener);

  // Called before the ring is written, so that what the GPU has done is in it; with `all`, also
  // what is in buffers that other work, which has not ended, keeps open.
  void on_deliver(std::function<void(bool all)> deliver);

  // Work of a GPU and its launches, from any thread.
  void add(const timeline::RecordedSlice& slice);
  void add_launches(std::uint64_t range, std::span<const std::uint32_t> correlations);
  void add_note(std::string_view text);
  void add_lost(std::uint64_t records);
  void flush();

  // Launches of kernels, told only where somebody watches for hangs. `name` of collectives alone.
  bool watches_hangs() const { return options_.hang > 0; }
  void kernel_launched(std::uint32_t correlation) { hangs_.kernel_launched(correlation); }
  void collective_launched(std::uint32_t correlation, std::string_view name);

 private:
  static constexpr std::chrono::milliseconds kFlushEvery{500};
  static constexpr std::chrono::milliseconds kLookEvery{200};
  static constexpr std::size_t kRingBytes = 256U << 20U;

  void finish();
  void set_paused(bool paused);
  void innermost_is(std::uint64_t range);  // of this thread; 0: none
  void changed() const;
  void end_step_locked(Nanos time);
  void write_if_due_locked(Nanos time);
  void write_block_locked();
  Fd create_file(const std::filesystem::path& folder, const std::string& name,
                 std::filesystem::path& path) const;
  Result<Fd> new_file_locked(const std::filesystem::path& folder);
  Status open_file_locked();
  void say_broken_locked(const Status& why);
  void after_fork_in_child();

  // Of a recorder that keeps a ring.
  void watch_locked();
  void watch(const std::stop_token& stop);
  void deliver(bool all);
  std::string reason_to_write();
  void ask(const std::string& reason);
  void write_dump(const DumpFolders::Dump& dump);

  const RecorderOptions options_;
  const Nanos began_;
  std::atomic<bool> paused_;
  std::atomic<std::int64_t> step_{timeline::kNone};
  std::atomic<std::uint64_t> step_id_{0};
  std::atomic<std::uint64_t> next_id_{1};
  std::atomic<std::uint64_t> only_range_{0};  // where one thread alone has ranges: its innermost
  std::function<void()> listener_;
  std::function<void(bool)> deliver_;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::uint64_t> innermost_;  // thread to range
  timeline::RecordingEncoder encoder_;
  Fd file_;
  int pid_ = 0;
  bool broken_ = false;  // the disk refused, and it was said: nothing more is written
  Nanos step_begin_ = 0;
  bool step_recorded_ = false;
  Nanos last_flush_ = 0;

  BlockRing ring_{options_.ring, kRingBytes};
  SlowSteps slow_steps_{options_.slow};
  HangWatch hangs_{options_.hang};
  DumpFolders dumps_{options_.folder};
  Nanos quiet_until_ = 0;  // one reason to write is enough for a ring's time
  std::string reason_;     // to write, for the thread that looks
  std::unique_ptr<std::jthread> watcher_;
};

}  // namespace assay::inject
