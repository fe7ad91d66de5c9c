#include "campaign/pid_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <span>
#include <string>

#include "base/clock.h"

namespace assay::campaign {
namespace {

// Asks for the file's lock, which belongs to the open file (F_OFD_SETLK), or who has it
// (F_OFD_GETLK). Returns whether it was free.
bool is_free(const Fd& file, int command) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool done = ::fcntl(file.get(), command, &lock) == 0;
  return done && (command == F_OFD_SETLK || lock.l_type == F_UNLCK);
}

// The process that the file names while its lock is held, or -1.
pid_t alive_in(const std::filesystem::path& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || is_free(file, F_OFD_GETLK)) return -1;
  const std::string text = read_file(path).value_or("");
  const auto pid = static_cast<pid_t>(std::strtol(text.c_str(), nullptr, 10));
  return pid > 0 ? pid : -1;
}

}  // namespace

Result<Fd> take_pid_file(const std::filesystem::path& path) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  ASSAY_TRY(Fd file, open_output(path, O_RDWR));
  if (!is_free(file, F_OFD_SETLK)) {
    return usage_error(
        fmt::format("{}: the campaign is running as process {}; `assay stop` ends it",
                    path.string(), alive_in(path)));
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
