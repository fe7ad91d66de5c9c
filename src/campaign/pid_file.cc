#include "campaign/pid_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <span>
#include <string>

#include "base/atomic_file.h"
#include "base/clock.h"

namespace assay::campaign {
namespace {

// Takes the file's lock, which belongs to the open file (F_OFD_SETLK), or asks who has it
// (F_OFD_GETLK). Returns the kind of the lock afterwards, or -1.
int ask_lock(const Fd& file, int command) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return ::fcntl(file.get(), command, &lock) == 0 ? lock.l_type : -1;
}

// The process that the file names while its lock is held, or -1. Who may only read the file can
// lock it for reading, and a file of another user may name any process: neither counts.
pid_t alive_in(const std::filesystem::path& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::array<char, 32> text{};
  if (!file || ask_lock(file, F_OFD_GETLK) != F_WRLCK ||
      ::read(file.get(), text.data(), text.size() - 1) <= 0) {
    return -1;
  }
  const auto pid = static_cast<pid_t>(std::strtol(text.data(), nullptr, 10));
  struct stat facts {};
  struct stat process {};
  const bool named = ::fstat(file.get(), &facts) == 0 && pid > 0 &&
                     ::stat(fmt::format("/proc/{}", pid).c_str(), &process) == 0;
  return named && facts.st_uid == process.st_uid ? pid : -1;
}

}  // namespace

Result<Fd> take_pid_file(const std::filesystem::path& path) {
  ASSAY_CHECK(make_folder(path.parent_path()));
  ASSAY_TRY(Fd file, open_output(path, O_RDWR));
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0 || facts.st_uid != ::geteuid()) {
    return usage_error(path.string() + ": it belongs to another user; remove it");
  }
  if (ask_lock(file, F_OFD_SETLK) < 0) {
    const pid_t pid = alive_in(path);
    return usage_error(
        pid < 0 ? path.string() + ": a process that is no campaign locks it; remove it"
                : fmt::format("{}: the campaign is running as process {}; `assay stop` ends it",
                              path.string(), pid));
  }
  if (::ftruncate(file.get(), 0) != 0) return errno_error("cannot write " + path.string());
  const std::string text = fmt::format("{}\n", ::getpid());
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
  const pid_t pid = alive_in(path);
  if (pid < 0) return false;
  // The descriptor is opened before the check, so the signal cannot reach a process that was given
  // the same id after the check.
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process || alive_in(path) != pid) return false;
  if (::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) == 0) return true;
  if (errno == ESRCH) return false;
  return errno_error(fmt::format("cannot signal process {}", pid));
}

}  // namespace assay::campaign
