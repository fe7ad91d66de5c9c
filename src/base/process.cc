#include "base/process.h"

#include <fcntl.h>
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

// Only async-signal-safe calls from here to exec: the parent may have threads.
[[noreturn]] void become_child(const SpawnOptions& options, const std::string& program,
                               char* const* argv, char* const* environment, pid_t parent,
                               int error_pipe, std::span<int> lifted) {
  const auto give_up = [&] {
    const int code = errno;
    (void)!::write(error_pipe, &code, sizeof code);
    ::_exit(127);
  };
  if (options.new_group) ::setpgid(0, 0);
  if (options.die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // it died before the line above
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::signal(number, SIG_DFL);
  // Lift every descriptor above the targets first, so that no dup2 overwrites one that is needed.
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

}  // namespace

std::vector<std::string> environment_of(const SpawnOptions& options) {
  std::map<std::string, std::string> entries;
  const auto add = [&](std::string_view entry) {
    const std::size_t equals = entry.find('=');
    entries[std::string(entry.substr(0, equals))] = std::string(entry);
  };
  for (char** entry = environ; *entry != nullptr; ++entry) add(*entry);
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
  // execvp looks in the PATH of the *parent's* environment at the time of the call; resolved here,
  // so that the child needs nothing but async-signal-safe calls.
  const std::string program = find_program(options.argv.front()).value_or(options.argv.front());
  std::vector<int> lifted(options.fds.size());  // made here: the child may not allocate
  ASSAY_TRY(FdPair errors, make_pipe());

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("fork");
  if (pid == 0) {
    become_child(options, program, argv.data(), env.data(), parent, errors.second.get(), lifted);
  }
  errors.second.reset();
  Process process;
  process.pid_ = pid;
  process.own_group_ = options.new_group;
  if (options.new_group) ::setpgid(pid, pid);  // in both processes, as either may come first
  process.pidfd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
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
  if (pid_ <= 0) return;
  own_group_ ? signal_group(SIGKILL) : signal(SIGKILL);
  (void)wait();
}

// A child that is not reaped yet keeps its number; of another process's child the number may be
// somebody else's as soon as it has ended.
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
  pollfd ended{pidfd_.get(), POLLIN, 0};
  if (::poll(&ended, 1, static_cast<int>(limit.count())) != 1) signal_group(SIGKILL);
  return wait();
}

namespace {
ExitStatus decode(int status) {
  if (WIFSIGNALED(status)) return {0, WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}
}  // namespace

Result<ExitStatus> Process::wait() {
  if (!child_) {
    pollfd ended{pidfd_.get(), POLLIN, 0};
    while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
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
  pid_ = -1;
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
  pid_ = -1;
  status = decode(raw);
  return true;
}

std::string ExitStatus::describe() const {
  if (!known) return "how is known to its parent alone";
  if (signal != 0) return "killed by " + signal_name(signal);
  return "exit code " + std::to_string(code);
}

namespace {
// glibc gives these names from 2.32 on; assay also runs on older ones.
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
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/bin:/bin";
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    std::string candidate = std::string(rest.substr(0, colon)) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
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
