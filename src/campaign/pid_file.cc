#include "campaign/pid_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <sstream>
#include <string>
#include <utility>

#include "base/text.h"

namespace assay {
namespace {

struct Identity {
  pid_t pid = -1;
  std::uint64_t started = 0;  // clock ticks after the machine's start
  std::string boot;
  bool operator==(const Identity&) const = default;
};

std::string this_boot() {
  const auto text = read_file("/proc/sys/kernel/random/boot_id");
  return text ? std::string(trimmed(*text)) : "unknown";
}

// As it is now; nothing: there is no such process.
std::optional<Identity> identity_of(pid_t pid) {
  const auto stat = read_file(fmt::format("/proc/{}/stat", pid));
  if (!stat) return std::nullopt;
  const std::size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat->substr(name_end + 2));
  std::string skipped;
  constexpr int kStateField = 3;
  constexpr int kStartField = 22;
  for (int field = kStateField; field < kStartField; ++field) {
    fields >> skipped;
    if (field == kStateField && (skipped == "Z" || skipped == "X")) return std::nullopt;
  }
  Identity found{pid, 0, this_boot()};
  fields >> found.started;
  return fields ? std::optional(found) : std::nullopt;
}

std::optional<Identity> recorded_in(const std::filesystem::path& path) {
  const auto text = read_file(path);
  if (!text) return std::nullopt;
  std::istringstream lines(*text);
  Identity found;
  lines >> found.pid >> found.started >> found.boot;
  if (!lines || found.pid <= 0) return std::nullopt;
  return found;
}

std::optional<Identity> alive_in(const std::filesystem::path& path) {
  const auto recorded = recorded_in(path);
  if (!recorded) return std::nullopt;
  const auto actual = identity_of(recorded->pid);
  return actual == recorded ? recorded : std::nullopt;
}

}  // namespace

Result<PidFile> PidFile::take(const std::filesystem::path& path) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  PidFile taken(Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)));
  if (!taken.locked_) return errno_error("cannot write " + path.string());
  const int fd = taken.locked_.get();
  const bool locked = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  if (const auto other = alive_in(path); other || !locked) {
    return usage_error(fmt::format("{}: the campaign runs already{}; `assay stop` ends it",
                                   path.string(),
                                   other ? fmt::format(" (process {})", other->pid) : ""));
  }
  const auto own = identity_of(::getpid());
  if (!own) return fail("cannot read /proc/self/stat");
  const std::string text = fmt::format("{}\n{}\n{}\n", own->pid, own->started, own->boot);
  if (::ftruncate(fd, 0) != 0) return errno_error("cannot write " + path.string());
  ASSAY_CHECK(write_all(fd, std::as_bytes(std::span(text))));
  taken.path_ = path;
  return taken;
}

PidFile::PidFile(PidFile&& other) noexcept
    : locked_(std::move(other.locked_)), path_(std::exchange(other.path_, {})) {}

PidFile::~PidFile() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove(path_, ignored);
}

std::optional<RunningProcess> running_process(const std::filesystem::path& path) {
  const auto alive = alive_in(path);
  if (!alive) return std::nullopt;
  double up = 0;
  if (const auto text = read_file("/proc/uptime")) std::istringstream(*text) >> up;
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return RunningProcess{alive->pid, up - static_cast<double>(alive->started) / ticks};
}

// The descriptor is the process's before it is asked who it is, so the signal reaches nobody else.
Result<bool> signal_process(const std::filesystem::path& path, int signal) {
  const auto recorded = recorded_in(path);
  if (!recorded) return false;
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, recorded->pid, 0)));
  if (!process || identity_of(recorded->pid) != recorded) return false;
  if (::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) == 0) return true;
  if (errno == ESRCH) return false;
  return errno_error(fmt::format("cannot signal process {}", recorded->pid));
}

}  // namespace assay
