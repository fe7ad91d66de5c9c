#pragma once

// Child processes. They are started with an argv, never through a shell, and end with the process
// that started them. A pidfd identifies a child, so a recycled pid is never signalled.

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace assay {

struct SpawnOptions {
  std::vector<std::string> argv;         // argv[0] is looked up in PATH unless it has a slash
  std::vector<std::string> environment;  // "NAME=value", added to or replacing our own
  bool whole_environment = false;        // nothing of our own environment is added to it
  std::string directory;                 // working directory; empty: ours
  // Our descriptor fds[i].first becomes fds[i].second in the child; all others are closed. Without
  // an entry for 0 the child reads /dev/null; 1 and 2 are inherited.
  std::vector<std::pair<int, int>> fds;
  bool new_group = true;        // a process group of its own, which can be killed as a whole
  bool new_session = false;     // that group in a session of its own, without a terminal
  bool die_with_parent = true;  // SIGKILL when the thread that spawned it ends (PR_SET_PDEATHSIG)
};

// The child's environment: ours unless it is whole, overridden by the entries of the options,
// sorted by name.
std::vector<std::string> environment_of(const SpawnOptions& options);

struct ExitStatus {
  int code = 0;       // exit code; meaningless when signal != 0
  int signal = 0;     // the signal that ended it, or 0
  bool known = true;  // false for another process's child: the kernel tells only its parent
  bool ok() const { return known && code == 0 && signal == 0; }
  std::string describe() const;  // "exit code 3", "killed by SIGSEGV"
};

// A running child. The destructor kills its group and reaps it, so no orphan is left by accident.
class Process {
 public:
  Process() = default;
  static Result<Process> spawn(const SpawnOptions& options);
  // Takes over a process that another process has started for us, the leader of its own group. It
  // can be ended like a child, but its exit status stays unknown.
  static Process adopt(pid_t pid, Fd pidfd);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  // Lets it live on after this object.
  void leave() { pid_ = -1; }

  pid_t pid() const { return pid_; }
  // Readable (poll) once the child has ended.
  int pidfd() const { return pidfd_.get(); }
  bool running() const { return pid_ > 0; }

  // Signals the process; signal_group signals everything in its group.
  void signal(int number) const;
  void signal_group(int number) const;
  // Sends SIGTERM, then SIGKILL to the whole group if the process still runs after `grace`.
  Result<ExitStatus> stop(std::chrono::milliseconds grace);

  // Waits for the end; kills the whole group after `limit`. An error if the process does not end
  // within 10 s of SIGKILL.
  Result<ExitStatus> wait_at_most(std::chrono::milliseconds limit);

  // Waits for the end without a limit. Not for an event loop.
  Result<ExitStatus> wait();
  // Reaps the process and sets `status` if it has ended; returns false if it still runs.
  Result<bool> try_wait(ExitStatus& status);

 private:
  bool has_ended() const;
  Result<ExitStatus> end();

  pid_t pid_ = -1;
  bool own_group_ = false;
  bool child_ = true;
  Fd pidfd_;
};

// Whether this is a child that Process::spawn() started and that was not reaped yet.
bool is_spawned(pid_t pid);
// Makes is_spawned() true for a child that was forked in another way.
void count_as_spawned(pid_t pid);

// "SIGSEGV" for 11, "signal 99" for a number without a name.
std::string signal_name(int number);
// The path of a program that can run: a name with a slash, or one found by PATH.
std::optional<std::string> find_program(const std::string& name);
// The path of the running program.
Result<std::string> own_executable();

}  // namespace assay
