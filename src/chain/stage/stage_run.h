#pragma once

// Runs one stage: a child in its own process group, with limits on its time and its silence. Its
// output goes to a bounded log and, line by line, to a listener.

#include <poll.h>

#include <array>
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
#include "chain/stage/usage.h"

namespace assay::chain::stage {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

struct Limits {
  Seconds stage{0};  // 0: none
  Seconds idle{0};   // without output; 0: none
  Seconds grace{3};  // between SIGTERM and SIGKILL
  Seconds drain{2};  // for output after the process has ended
};

enum class StageState {
  passed,
  failed,         // ended by itself: exit code or signal
  timed_out,      // over its time limit
  silent,         // over its idle limit
  disk_full,      // its log could not be written
  not_made,       // exit code 0, but its files are missing or old
  wrong_device,   // should use a GPU and ran on the CPU
  traceback,      // exit code 0, but its log has an uncaught Python exception
  not_finite,     // exit code 0, but a loss is NaN or infinite
  unfinished,     // exit code 0, but its log shows fewer epochs or steps than asked for, or none
  stale,          // would read a file that this run did not make
  out_of_memory,  // the kernel killed it because memory was used up
  not_started,    // its program could not be started
  blocked,        // a stage that it needs did not pass
  unavailable,    // its tool is not installed
  interrupted,    // the user ended the run
};
// The name of a state in results and messages: "passed".
std::string_view name(StageState state);

struct Outcome {
  StageState state = StageState::passed;
  std::string detail;  // a line for people; "" if passed
  ExitStatus exit;
  double seconds = 0;
  std::uint64_t log_bytes = 0;
  Usage peak;
  std::size_t looks = 0;  // number of samples behind the peak
  bool passed() const { return state == StageState::passed; }
};

// Somebody who gets a copy of a stage's output.
class OutputCopy {
 public:
  OutputCopy() = default;
  OutputCopy(const OutputCopy&) = delete;
  OutputCopy& operator=(const OutputCopy&) = delete;
  virtual ~OutputCopy() = default;
  // Whether it takes more now. While it does not, the stage's output is not read.
  virtual bool ready() const = 0;
  virtual void take(bool of_errors, std::string_view bytes) = 0;
};

struct StageCommand {
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  bool whole_environment = false;  // nothing of assay's own environment is added
  std::string directory;
  std::string log;         // path, relative to assay's working directory
  int input = -1;          // descriptor for its stdin; -1: /dev/null
  Guard* guard = nullptr;  // ends its processes if assay is killed
  std::string follows;     // a file that it writes; its new lines count as output
  OutputCopy* copy = nullptr;
  bool errors_apart = false;  // the copy gets stderr apart from stdout
  // False for a child that notices assay's end by its stdin and then cleans up.
  bool die_with_parent = true;
  // True for a run of `assay api`, which ends its own processes and may keep interpreters: they are
  // not marked, sampled or ended.
  bool leaves_processes = false;
};

class StageRun {
 public:
  using LineHandler = std::function<void(std::string_view)>;

  static Result<StageRun> start(const StageCommand& command, const Limits& limits,
                                LineHandler on_line);

  // Adds the descriptors to poll: the child's output and its end.
  void add_to(std::vector<pollfd>& fds) const;
  // The time of the next tick() that is needed without an event.
  Clock::time_point deadline() const;
  // Reads output and checks limits. Returns the outcome once the stage has ended.
  std::optional<Outcome> tick();
  // Ends the stage early with this state, first by SIGTERM.
  void stop(StageState state, std::string detail);
  // Sends the process a signal.
  void signal(int number) const { process_.signal(number); }
  // Ends a stopped stage at once, without its grace.
  void kill();

  double seconds() const { return Seconds(Clock::now() - started_).count(); }
  // The last sample of its usage, and the number of samples.
  const Usage& last_usage() const { return last_; }
  std::size_t looks() const { return looks_; }

 private:
  StageRun() = default;
  // One pipe for stdout, and for stderr unless that is apart.
  struct Output {
    Fd pipe;
    LineSplitter lines;
  };
  bool has_output() const;
  void read_output(bool of_errors, Output& output);
  void read_outputs();
  void read_followed();
  void watch_limits(Clock::time_point now);
  void sample(Clock::time_point now);
  Outcome finish();

  Process process_;
  Guard* guard_ = nullptr;
  std::string mark_;  // of its processes (leftovers.h); "": they are left alone
  std::array<Output, 2> outputs_;
  OutputCopy* copy_ = nullptr;
  BoundedLog log_;
  Limits limits_;
  LineHandler on_line_;
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
