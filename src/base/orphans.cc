#include "base/orphans.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <filesystem>
#include <string_view>

#include "base/fd.h"
#include "base/process.h"

namespace assay {
namespace {

// 0 for what is no number.
pid_t number_at(std::string_view text) {
  pid_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The parent of a process: the second word behind its name, which may hold blanks and brackets.
pid_t parent_of(const std::filesystem::path& process) {
  const std::string stat = read_file(process / "stat").value_or("");
  const std::size_t name_end = stat.rfind(')');
  constexpr std::size_t kState = 4;  // ") S "
  if (name_end == std::string::npos || name_end + kState >= stat.size()) return 0;
  return number_at(std::string_view(stat).substr(name_end + kState));
}

// Reads all of /proc: the lists of children (/proc/PID/task/TID/children) are not in every kernel.
std::vector<pid_t> own_children() {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const pid_t pid = number_at(entry.path().filename().string());
    if (pid > 0 && parent_of(entry.path()) == ::getpid()) found.push_back(pid);
  }
  return found;
}

std::string command_of(pid_t pid) {
  std::string name = read_file("/proc/" + std::to_string(pid) + "/comm").value_or("");
  while (name.ends_with('\n')) name.pop_back();
  return name;
}

}  // namespace

// A shell that starts a job and then becomes this program (exec) leaves us the job as a child.
void adopt_orphans() {
  for (const pid_t pid : own_children()) {
    if (!is_spawned(pid)) count_as_spawned(pid);
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

OrphanSweep sweep_orphans() {
  OrphanSweep sweep;
  for (const pid_t pid : own_children()) {
    if (is_spawned(pid)) continue;
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) == pid) continue;
    sweep.killed.push_back(command_of(pid));
    ::kill(pid, SIGKILL);
    sweep.all_gone = false;  // also its own children come to us only when it has ended
  }
  return sweep;
}

}  // namespace assay
