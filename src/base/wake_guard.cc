#include "base/wake_guard.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/fd.h"
#include "base/process.h"

namespace assay {
namespace {

constexpr std::size_t kMost = 256;  // processes that are remembered, the newest

// Closes all descriptors from `first` on. The helper must not keep our sockets or output open.
void close_from(unsigned first) {
  constexpr unsigned kUsual = 4096;
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, first, ~0U, 0) == 0) return;
#endif
  for (unsigned fd = first; fd < kUsual; ++fd) ::close(static_cast<int>(fd));
}

// The helper's life. Only async-signal-safe calls: the parent may have threads.
[[noreturn]] void guard(int pids) {
  ::setsid();
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_IGN);
  ::prctl(PR_SET_NAME, "assay-guard");
  if (::dup2(pids, 0) < 0) ::_exit(1);
  close_from(1);
  std::array<int, kMost> processes{};
  std::size_t count = 0;
  pid_t pid = 0;
  while (true) {
    const ssize_t got = ::read(0, &pid, sizeof pid);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof pid) break;  // our parent has ended
    int& place = processes[count++ % kMost];
    if (place > 0) ::close(place);
    place = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  }
  for (const int process : processes) {
    if (process > 0) ::syscall(SYS_pidfd_send_signal, process, SIGCONT, nullptr, 0);
  }
  ::_exit(0);
}

// The writing end of the pipe to the helper, which this process keeps open until it ends.
int start_guard() {
  auto pipe = make_pipe();
  if (!pipe) return -1;
  const pid_t helper = ::fork();
  if (helper == 0) guard(pipe->first.get());
  if (helper < 0) return -1;
  count_as_spawned(helper);
  return pipe->second.release();
}

}  // namespace

void continue_after_us(pid_t pid) {
  static const int helper = start_guard();
  // The write fails without a signal if the helper was killed: run_program() ignores SIGPIPE.
  if (helper >= 0) (void)!::write(helper, &pid, sizeof pid);
}

}  // namespace assay
