#pragma once

// One stage while it runs: a child in a process group of its own, its output going to a bounded log
// and, line by line, to its listener; a limit on its time and on its silence.

#include <poll.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "base/result.h"
#include "chain/stage/bounded_log.h"
#include "chain/stage/guard.h"
#include "chain/stage/line_splitter.h"
#include "chain/stage/log_tail.h"
#include "chain/stage/usage.h"

namespace assay::chain::stage {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

struct Limits {
  Seconds stage{0};  // 0: none
  Seconds idle{0};   // without a byte of output; 0: none
  Seconds grace{3};  // between SIGTERM and SIGKILL
  Seconds drain{2};  // for output that comes after the process has ended
};

enum class StageState {
  passed,
  failed,        // it ended by itself: exit code or signal
  timed_out,     // over its time limit
  silent,        // over its idle limit
  disk_full,     // its log could not be written
  not_made,      // exit code 0, but what it had to make is not there, or is the old one
  wrong_device,  // it was told to use a GPU and ran on the CPU
  not_started,   // its program cannot be started
  blocked,       // what it needs was not made by this run
  unavailable,   // its tool is not installed
  interrupted,   // the user ended the run
};
std::string_view name(StageState state);

struct Outcome {
  StageState state = StageState::passed;
  std::string detail;  // one line for people; empty when passed
  ExitStatus exit;
  double seconds = 0;
  std::uint64_t log_bytes = 0;
  Usage peak;
  std::size_t looks = 0;  // at its use, for the peak
  bool passed() const { return state == StageState::passed; }
};

struct StageCommand {
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  std::string directory;
  std::string log;              // path, from our own working directory
  int input = -1;               // a descriptor of ours to be its stdin; none: /dev/null
  Guard* guard = nullptr;       // ends its group when we are killed
  std::string follows;          // a file that it writes: its new lines are output too
  bool die_with_parent = true;  // false for a child that sees our end by its stdin and tidies up
};

class StageRun {
 public:
  using LineHandler = std::function<void(std::string_view)>;

  static Result<StageRun> start(const StageCommand& command, const Limits& limits,
                                LineHandler on_line);

  // What to poll: the child's output and its end.
  void add_to(std::vector<pollfd>& fds) const;
  // The next moment at which tick() has something to do.
  Clock::time_point deadline() const;
  // Reads what is there and looks at limits; gives the outcome once the stage has ended.
  std::optional<Outcome> tick();
  // Ends it early, with this as its state.
  void stop(StageState state, std::string detail);
  // Ends what was stopped at once, without the grace that it has to tidy up.
  void kill();

  double seconds() const { return Seconds(Clock::now() - started_).count(); }
  // What it used when it was last looked at, and how often that was.
  const Usage& last_usage() const { return last_; }
  std::size_t looks() const { return looks_; }

 private:
  StageRun() = default;
  void read_output();
  void read_followed();
  void watch_limits(Clock::time_point now);
  void sample(Clock::time_point now);
  Outcome finish();

  Process process_;
  Guard* guard_ = nullptr;
  Fd output_;
  BoundedLog log_;
  Limits limits_;
  LineHandler on_line_;
  LineSplitter lines_;
  std::optional<LogTail> followed_;
  Clock::time_point started_;
  Clock::time_point last_byte_;
  Clock::time_point ticked_;
  Clock::time_point next_sample_;
  Seconds sample_every_{0};
  std::optional<Clock::time_point> exited_;
  std::optional<Clock::time_point> kill_at_;
  std::optional<StageState> stopped_;
  std::string detail_;
  std::vector<double> gpus_before_;
  Usage last_;
  std::size_t looks_ = 0;
  Usage peak_;
};

}  // namespace assay::chain::stage
