#pragma once

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

#include "base/fd.h"

namespace assay {

// Blocks SIGINT and SIGTERM while it lives, and reports them through a descriptor instead. The
// destructor restores the signal mask.
class Interrupts {
 public:
  Interrupts() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGINT);
    ::sigaddset(&set, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &set, &old_);
    fd_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts() { ::sigprocmask(SIG_SETMASK, &old_, nullptr); }

  // Readable (poll) when a signal is pending.
  int fd() const { return fd_.get(); }
  // The number of the next pending signal, or 0.
  int next() const {
    signalfd_siginfo info{};
    return ::read(fd_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo)
                                                                : 0;
  }

 private:
  sigset_t old_{};
  Fd fd_;
};

}  // namespace assay
