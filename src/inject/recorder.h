#pragma once

// Records ranges, steps and GPU work of the process it runs in, and writes them to a file per
// process.

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

// What to record; `assay timeline record` sets the environment variables.
struct RecorderOptions {
  std::filesystem::path folder;                                        // ASSAY_RECORD_DIR
  std::int64_t first_step = std::numeric_limits<std::int64_t>::min();  // ASSAY_RECORD_STEPS=3:6
  std::int64_t end_step = std::numeric_limits<std::int64_t>::max();    // exclusive
  Nanos first_time = 0;  // ASSAY_RECORD_SECONDS=10:20 after the start
  Nanos end_time = std::numeric_limits<Nanos>::max();
  bool waiting = false;    // ASSAY_RECORD_PAUSED=1: record nothing until start()
  std::int64_t every = 1;  // ASSAY_RECORD_EVERY=10: steps 0, 10, 20, …
  // ASSAY_RECORD_RING=60: keep the last 60 seconds, and write them only on request. 0: write
  // everything.
  Nanos ring = 0;
  // ASSAY_RECORD_HANG=30: request a dump if the GPU makes no progress for so many seconds.
  Nanos hang = 0;
  // ASSAY_RECORD_SLOW=1.5: request a dump if a step takes so many times the median.
  double slow = 0;

  // The rank of this process in its job, from the launcher's RANK and WORLD_SIZE.
  std::int32_t rank = timeline::kNone;
  std::int32_t world_size = timeline::kNone;

  // Returns nothing if ASSAY_RECORD_DIR is not set.
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

  // The recorder of this process, or nullptr if recording was not requested.
  static Recorder* instance();

  // Ranges nest per thread. A range whose name is a number is a step, as in Paddle's NVTX hook. A
  // range that begins while recording is off is not recorded.
  void begin_range(std::string_view name, std::int32_t micro_batch = timeline::kNone);
  // Begins a range for a job; "forward@3" is the job forward of micro batch 3.
  void begin_job(std::string_view text);
  void end_range();

  // Begins a step and ends the previous one.
  void begin_step(std::int64_t number);
  void start() { set_paused(false); }
  void stop() { set_paused(true); }
  bool active() const;
  const RecorderOptions& options() const { return options_; }
  // Time since the recorder's start; first_time and end_time are relative to it.
  Nanos age() const { return now() - began_; }

  // The id of the range to which a launch on this thread belongs, or 0. It is the thread's
  // innermost range. Without one, it is the innermost range of the only other thread that has
  // ranges, because PyTorch runs backward on its own thread while the caller waits in its range.
  // Else it is the step.
  std::uint64_t current_range() const;

  // The listener is called when active() may have changed for another reason than time.
  void on_change(std::function<void()> listener);

  // Called before the ring is written, to add finished GPU work. With `all`, it also adds work from
  // buffers that unfinished work keeps open.
  void on_deliver(std::function<void(bool all)> deliver);

  // Adds GPU work or a launch. Thread-safe.
  void add(const timeline::RecordedSlice& slice);
  void add_launches(std::uint64_t range, std::span<const std::uint32_t> correlations);
  void add_note(std::string_view text);
  void add_lost(std::uint64_t records);
  void flush();

  // Reports kernel launches; only needed if watches_hangs(). `name` is only set for collectives.
  bool watches_hangs() const { return options_.hang > 0; }
  void kernel_launched(std::uint32_t correlation) { hangs_.kernel_launched(correlation); }
  void collective_launched(std::uint32_t correlation, std::string_view name);

 private:
  static constexpr std::chrono::milliseconds kFlushEvery{500};
  static constexpr std::chrono::milliseconds kLookEvery{200};
  static constexpr std::size_t kRingBytes = 256U << 20U;

  void finish();
  void set_paused(bool paused);
  void innermost_is(std::uint64_t range);  // sets the thread's innermost range; 0: none
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

  // Starts the thread that watches a ring.
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
  std::atomic<std::uint64_t> only_range_{0};  // the innermost range, if only one thread has ranges
  std::function<void()> listener_;
  std::function<void(bool)> deliver_;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::uint64_t> innermost_;  // thread → range
  timeline::RecordingEncoder encoder_;
  Fd file_;
  int pid_ = 0;
  bool broken_ = false;  // writing failed and was reported; nothing more is written
  Nanos step_begin_ = 0;
  bool step_recorded_ = false;
  Nanos last_flush_ = 0;

  BlockRing ring_{options_.ring, kRingBytes};
  SlowSteps slow_steps_{options_.slow};
  HangWatch hangs_{options_.hang};
  DumpFolders dumps_{options_.folder};
  Nanos quiet_until_ = 0;  // until then no other dump is requested
  std::string reason_;     // why the watching thread must write; "" if it need not
  std::unique_ptr<std::jthread> watcher_;
};

}  // namespace assay::inject
