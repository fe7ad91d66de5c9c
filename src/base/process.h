#pragma once

// Child processes: started with plain argv (never a shell), known by a pidfd so that a recycled pid
// is never signalled, and ended with the process that started them.

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
  std::string directory;                 // working directory; empty: ours
  // Descriptor fds[i].first of ours becomes fds[i].second in the child; everything else closes.
  // Without an entry for 0 the child reads /dev/null; 1 and 2 are inherited.
  std::vector<std::pair<int, int>> fds;
  bool new_group = true;        // a process group of its own, so that the whole of it can be ended
  bool die_with_parent = true;  // SIGKILL when the thread that spawned it ends (PR_SET_PDEATHSIG)
};

// The environment that a child has with these options: ours, with theirs on top, sorted by name.
std::vector<std::string> environment_of(const SpawnOptions& options);

struct ExitStatus {
  int code = 0;       // exit code; meaningless when signal != 0
  int signal = 0;     // the signal that ended it, or 0
  bool known = true;  // false: it was another process's child, and only that one is told
  bool ok() const { return known && code == 0 && signal == 0; }
  std::string describe() const;  // "exit code 3", "killed by SIGSEGV"
};

// A running child. The destructor kills its group and reaps it: no orphan is left by accident.
class Process {
 public:
  Process() = default;
  static Result<Process> spawn(const SpawnOptions& options);
  // One that another process has started for us, leader of its own group. It is ended like a child,
  // but nobody here learns how it ended.
  static Process adopt(pid_t pid, Fd pidfd);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  // Lets it live on by itself.
  void leave() { pid_ = -1; }

  pid_t pid() const { return pid_; }
  // Readable (poll) once the child has ended.
  int pidfd() const { return pidfd_.get(); }
  bool running() const { return pid_ > 0; }

  // Signals the process; signal_group signals everything in its group.
  void signal(int number) const;
  void signal_group(int number) const;
  // Asks with SIGTERM, and ends the whole group with SIGKILL when that has not helped in time.
  Result<ExitStatus> stop(std::chrono::milliseconds grace);

  // Waits, and after the limit ends the whole group with SIGKILL.
  Result<ExitStatus> wait_at_most(std::chrono::milliseconds limit);

  // Reaps: wait blocks; try_wait says nothing while the child still runs.
  Result<ExitStatus> wait();
  Result<bool> try_wait(ExitStatus& status);

 private:
  bool has_ended() const;

  pid_t pid_ = -1;
  bool own_group_ = false;
  bool child_ = true;
  Fd pidfd_;
};

// "SIGSEGV" for 11, "signal 99" for what has no name.
std::string signal_name(int number);
// Where PATH finds a program; a name with a slash is a path already, and is not looked at.
std::optional<std::string> find_program(const std::string& name);
// The path of the running program, for starting more of itself.
Result<std::string> own_executable();

}  // namespace assay
