#include "campaign/round.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace assay {

Result<HeldSignals> HeldSignals::hold() {
  sigset_t held;
  sigset_t before;
  ::sigemptyset(&held);
  ::sigaddset(&held, SIGINT);
  ::sigaddset(&held, SIGTERM);
  if (::sigprocmask(SIG_BLOCK, &held, &before) != 0) return errno_error("sigprocmask");
  HeldSignals signals(Fd(::signalfd(-1, &held, SFD_CLOEXEC)), before);
  if (!signals.fd_) return errno_error("signalfd");
  return signals;
}

HeldSignals::HeldSignals(HeldSignals&& other) noexcept
    : fd_(std::move(other.fd_)), before_(other.before_) {}

HeldSignals::~HeldSignals() {
  if (fd_) ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

int HeldSignals::next() const {
  signalfd_siginfo info{};
  const ssize_t got = ::read(fd_.get(), &info, sizeof info);
  return got == sizeof info ? static_cast<int>(info.ssi_signo) : SIGTERM;
}

namespace {

// What lies in the pipe at the moment. False: nobody can write into it any more.
Result<bool> hear_all(int pipe, const std::function<Status(std::string_view)>& hear) {
  std::array<char, 1 << 16> buffer{};
  while (true) {
    const ssize_t got = ::read(pipe, buffer.data(), buffer.size());
    if (got > 0) {
      ASSAY_CHECK(hear({buffer.data(), static_cast<std::size_t>(got)}));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
}

}  // namespace

Result<ExitStatus> run_heard(SpawnOptions options, const HeldSignals& signals,
                             const std::function<Status(std::string_view)>& hear,
                             const std::function<void()>& started, bool& stopped) {
  ASSAY_TRY(FdPair voice, make_pipe());
  ::fcntl(voice.first.get(), F_SETFL, O_NONBLOCK);
  options.fds = {{voice.second.get(), 1}, {voice.second.get(), 2}};
  ASSAY_TRY(Process process, Process::spawn(options));
  voice.second.reset();
  if (started) started();
  bool open = true;
  while (true) {
    std::array<pollfd, 3> waits{{{process.pidfd(), POLLIN, 0},
                                 {signals.fd(), POLLIN, 0},
                                 {open ? voice.first.get() : -1, POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return errno_error("poll");
    if (open) {
      ASSAY_TRY(open, hear_all(voice.first.get(), hear));
    }
    if (waits[1].revents != 0) {
      stopped = true;
      process.signal(signals.next());
    }
    if (waits[0].revents != 0) break;
  }
  if (open) ASSAY_CHECK(hear_all(voice.first.get(), hear));
  return process.wait();
}

}  // namespace assay
