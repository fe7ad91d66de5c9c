#include "campaign/pid_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/text.h"

namespace assay {
namespace {

// The text of a pid file: process id, start time in clock ticks since boot, boot id. Empty if there
// is no such process.
std::string identity_of(pid_t pid) {
  const auto stat = read_file(fmt::format("/proc/{}/stat", pid));
  const auto boot = read_file("/proc/sys/kernel/random/boot_id");
  // The second field is the program's name in parentheses, which may have spaces.
  const std::size_t name_end = stat ? stat->rfind(") ") : std::string::npos;
  if (name_end == std::string::npos) return "";
  const std::vector<std::string> fields = split_at(stat->substr(name_end + 2), ' ');
  constexpr std::size_t kStart = 22 - 3;  // proc(5) numbers the state 3 and the start time 22
  if (fields.size() <= kStart || fields[0] == "Z" || fields[0] == "X") return "";
  return fmt::format("{}\n{}\n{}\n", pid, fields[kStart],
                     boot ? trimmed(*boot) : std::string_view("unknown"));
}

// The process that the file names, or -1 if it has ended.
pid_t alive_in(const std::filesystem::path& path) {
  const auto text = read_file(path);
  const pid_t pid = text ? static_cast<pid_t>(std::strtol(text->c_str(), nullptr, 10)) : -1;
  return pid > 0 && identity_of(pid) == *text ? pid : -1;
}

}  // namespace

Result<Fd> take_pid_file(const std::filesystem::path& path) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  ASSAY_TRY(Fd file, open_output(path, O_RDWR));
  const bool locked = ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
  if (const pid_t other = alive_in(path); other > 0 || !locked) {
    return usage_error(fmt::format("{}: the campaign is running{}; `assay stop` ends it",
                                   path.string(),
                                   other > 0 ? fmt::format(" as process {}", other) : ""));
  }
  if (::ftruncate(file.get(), 0) != 0) return errno_error("cannot write " + path.string());
  const std::string text = identity_of(::getpid());
  ASSAY_CHECK(write_all(file.get(), std::as_bytes(std::span(text))));
  return file;
}

std::optional<RunningProcess> running_process(const std::filesystem::path& path) {
  const pid_t pid = alive_in(path);
  struct stat file {};
  if (pid < 0 || ::stat(path.c_str(), &file) != 0) return std::nullopt;
  const std::int64_t written_ms = file.st_mtim.tv_sec * 1000 + file.st_mtim.tv_nsec / 1'000'000;
  return RunningProcess{pid, static_cast<double>(wall_ms() - written_ms) / 1000};
}

Result<bool> signal_process(const std::filesystem::path& path, int signal) {
  const auto text = read_file(path);
  const pid_t pid = text ? static_cast<pid_t>(std::strtol(text->c_str(), nullptr, 10)) : -1;
  if (pid <= 0) return false;
  // The descriptor is opened before the check, so the signal cannot reach a process that was given
  // the same id after the check.
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process || alive_in(path) != pid) return false;
  if (::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) == 0) return true;
  if (errno == ESRCH) return false;
  return errno_error(fmt::format("cannot signal process {}", pid));
}

}  // namespace assay
