#include "base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string_view>
#include <utility>

namespace assay {
namespace {

std::vector<char*> c_strings(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

// A program starts within milliseconds; a machine that swaps may take seconds.
constexpr std::chrono::seconds kStartLimit{30};
// The kernel ends a killed process at once, unless it waits for a disk or a device that is hung.
constexpr std::chrono::seconds kEndLimit{10};

// Whether there is something to read, or the end, within `limit`. Signals do not shorten the wait.
bool wait_readable(int fd, std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    pollfd ready{fd, POLLIN, 0};
    const int got = ::poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (got != 0 && !(got < 0 && errno == EINTR)) return true;
    if (left.count() <= 0) return false;
  }
}

// Only async-signal-safe calls from here to exec: the parent may have threads.
[[noreturn]] void become_child(const SpawnOptions& options, const std::string& program,
                               char* const* argv, char* const* environment, pid_t parent,
                               int error_pipe, std::span<int> lifted) {
  const auto give_up = [&] {
    const int code = errno;
    (void)!::write(error_pipe, &code, sizeof code);
    ::_exit(127);
  };
  if (options.new_session) {
    ::setsid();
  } else if (options.new_group) {
    ::setpgid(0, 0);
  }
  if (options.die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // the parent died before the line above
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM, SIGHUP, SIGCHLD})
    ::signal(number, SIG_DFL);
  // Move every descriptor above the targets first, so that no dup2 overwrites a source.
  int above = STDERR_FILENO + 1;
  for (const auto& [source, target] : options.fds) above = std::max(above, target + 1);
  error_pipe = ::fcntl(error_pipe, F_DUPFD_CLOEXEC, above);
  for (std::size_t i = 0; i < lifted.size(); ++i) {
    lifted[i] = ::fcntl(options.fds[i].first, F_DUPFD_CLOEXEC, above);
    if (lifted[i] < 0) give_up();
  }
  bool has_input = false;
  for (std::size_t i = 0; i < lifted.size(); ++i) {
    if (::dup2(lifted[i], options.fds[i].second) < 0) give_up();
    has_input = has_input || options.fds[i].second == 0;
  }
  if (!has_input) {
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || ::dup2(null, 0) < 0) give_up();
  }
  if (!options.directory.empty() && ::chdir(options.directory.c_str()) != 0) give_up();
  ::execve(program.c_str(), argv, environment);
  give_up();
  ::_exit(127);
}

// The children that spawn() has started and that are not reaped yet.
class Spawned {
 public:
  void add(pid_t pid) {
    const std::scoped_lock lock(mutex_);
    pids_.insert(pid);
  }
  void remove(pid_t pid) {
    const std::scoped_lock lock(mutex_);
    pids_.erase(pid);
  }
  bool has(pid_t pid) {
    const std::scoped_lock lock(mutex_);
    return pids_.contains(pid);
  }

 private:
  std::mutex mutex_;
  std::set<pid_t> pids_;
};

Spawned& spawned() {
  static Spawned all;
  return all;
}

}  // namespace

bool is_spawned(pid_t pid) { return spawned().has(pid); }

void count_as_spawned(pid_t pid) { spawned().add(pid); }

std::vector<std::string> environment_of(const SpawnOptions& options) {
  std::map<std::string, std::string> entries;
  const auto add = [&](std::string_view entry) {
    const std::size_t equals = entry.find('=');
    entries[std::string(entry.substr(0, equals))] = std::string(entry);
  };
  for (char** entry = environ; *entry != nullptr && !options.whole_environment; ++entry) {
    add(*entry);
  }
  for (const std::string& entry : options.environment) add(entry);
  std::vector<std::string> merged;
  merged.reserve(entries.size());
  for (auto& [name, entry] : entries) merged.push_back(std::move(entry));
  return merged;
}

Result<Process> Process::spawn(const SpawnOptions& options) {
  if (options.argv.empty()) return fail("spawn: empty argv");
  std::vector<std::string> arguments = options.argv;
  std::vector<std::string> environment = environment_of(options);
  const std::vector<char*> argv = c_strings(arguments);
  const std::vector<char*> env = c_strings(environment);
  // Resolved here, because execvp() is not async-signal-safe.
  const std::string program = find_program(options.argv.front()).value_or(options.argv.front());
  std::vector<int> lifted(options.fds.size());  // allocated here: the child must not
  ASSAY_TRY(FdPair errors, make_pipe());

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("no process can be started (`ulimit -u` limits them)");
  if (pid == 0) {
    become_child(options, program, argv.data(), env.data(), parent, errors.second.get(), lifted);
  }
  errors.second.reset();
  Process process;
  process.pid_ = pid;
  process.own_group_ = options.new_group;
  // In both processes: either may run first. The leader of a group could not start a session.
  if (options.new_group && !options.new_session) ::setpgid(pid, pid);
  process.pidfd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  spawned().add(pid);
  if (!process.pidfd_) {
    const auto error = errno_error("cannot watch " + options.argv.front());
    process.signal_group(SIGKILL);
    (void)process.wait();
    return error;
  }
  // The pipe closes when the child becomes the program. A child that was stopped before, or whose
  // program lies on a disk that does not answer, must not stop us.
  if (!wait_readable(errors.first.get(), kStartLimit)) {
    return fail(fmt::format("cannot start {}: nothing happened for {} s", options.argv.front(),
                            kStartLimit.count()));
  }
  int code = 0;
  const auto got = read_exactly(errors.first.get(), std::as_writable_bytes(std::span(&code, 1)));
  if (got && *got) {
    errno = code;
    return errno_error("cannot start " + options.argv.front());
  }
  return process;
}

Process Process::adopt(pid_t pid, Fd pidfd) {
  Process process;
  process.pid_ = pid;
  process.own_group_ = true;
  process.child_ = false;
  process.pidfd_ = std::move(pidfd);
  return process;
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      own_group_(other.own_group_),
      child_(other.child_),
      pidfd_(std::move(other.pidfd_)) {}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(own_group_, other.own_group_);
  std::swap(child_, other.child_);
  std::swap(pidfd_, other.pidfd_);
  return *this;
}

Process::~Process() {
  if (pid_ > 0) (void)end();
}

Result<ExitStatus> Process::end() {
  signal_group(SIGKILL);
  if (!wait_readable(pidfd_.get(), kEndLimit)) {
    return fail(fmt::format("process {} does not end: it waits for a disk or a device",
                            std::exchange(pid_, -1)));
  }
  return wait();
}

// A child keeps its pid until we reap it. The pid of another process's child can be reused as soon
// as that has ended.
void Process::signal(int number) const {
  if (pid_ > 0 && (child_ || !has_ended())) ::kill(pid_, number);
}

void Process::signal_group(int number) const {
  if (pid_ > 0 && (child_ || !has_ended())) ::kill(own_group_ ? -pid_ : pid_, number);
}

bool Process::has_ended() const {
  pollfd ended{pidfd_.get(), POLLIN, 0};
  return ::poll(&ended, 1, 0) != 0;
}

Result<ExitStatus> Process::stop(std::chrono::milliseconds grace) {
  signal(SIGTERM);
  return wait_at_most(grace);
}

Result<ExitStatus> Process::wait_at_most(std::chrono::milliseconds limit) {
  if (wait_readable(pidfd_.get(), limit)) return wait();
  return end();
}

namespace {
ExitStatus decode(int status) {
  if (WIFSIGNALED(status)) return {0, WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}
}  // namespace

Result<ExitStatus> Process::wait() {
  if (!child_) {
    while (!wait_readable(pidfd_.get(), std::chrono::hours(1))) {
    }
    pid_ = -1;
    return ExitStatus{0, 0, false};
  }
  int status = 0;
  pid_t got = -1;
  do {
    got = ::waitpid(pid_, &status, 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno_error("waitpid");
  spawned().remove(std::exchange(pid_, -1));
  return decode(status);
}

Result<bool> Process::try_wait(ExitStatus& status) {
  if (!child_) {
    if (!has_ended()) return false;
    ASSAY_TRY(status, wait());
    return true;
  }
  int raw = 0;
  const pid_t got = ::waitpid(pid_, &raw, WNOHANG);
  if (got < 0) return errno_error("waitpid");
  if (got == 0) return false;
  spawned().remove(std::exchange(pid_, -1));
  status = decode(raw);
  return true;
}

std::string ExitStatus::describe() const {
  if (!known) return "how is known to its parent alone";
  if (signal != 0) return "killed by " + signal_name(signal);
  return "exit code " + std::to_string(code);
}

namespace {
// glibc has these names from 2.32 on; assay also runs on older versions.
constexpr auto kSignals = std::to_array<std::pair<int, std::string_view>>({
    {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},       {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
    {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"},     {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
    {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"},     {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
    {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"},     {SIGTERM, "SIGTERM"}, {SIGSTKFLT, "SIGSTKFLT"},
    {SIGCHLD, "SIGCHLD"}, {SIGCONT, "SIGCONT"},     {SIGSTOP, "SIGSTOP"}, {SIGTSTP, "SIGTSTP"},
    {SIGTTIN, "SIGTTIN"}, {SIGTTOU, "SIGTTOU"},     {SIGURG, "SIGURG"},   {SIGXCPU, "SIGXCPU"},
    {SIGXFSZ, "SIGXFSZ"}, {SIGVTALRM, "SIGVTALRM"}, {SIGPROF, "SIGPROF"}, {SIGWINCH, "SIGWINCH"},
    {SIGPOLL, "SIGPOLL"}, {SIGPWR, "SIGPWR"},       {SIGSYS, "SIGSYS"},
});
}  // namespace

std::string signal_name(int number) {
  const auto* const found = std::find_if(kSignals.begin(), kSignals.end(),
                                         [&](const auto& named) { return named.first == number; });
  return found == kSignals.end() ? "signal " + std::to_string(number) : std::string(found->second);
}

std::optional<std::string> find_program(const std::string& name) {
  const auto runs = [](const std::string& file) { return ::access(file.c_str(), X_OK) == 0; };
  if (name.find('/') != std::string::npos) return runs(name) ? std::optional(name) : std::nullopt;
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/bin:/bin";
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    std::string candidate = std::string(rest.substr(0, colon)) + "/" + name;
    if (runs(candidate)) return candidate;
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  }
  return std::nullopt;
}

Result<std::string> own_executable() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return fail("cannot find my own program file: " + error.message());
  return path.string();
}

}  // namespace assay
