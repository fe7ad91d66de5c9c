#pragma once

// SIGINT and SIGTERM as something to poll, for as long as this lives; the mask is put back at its
// end.

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

#include "base/fd.h"

namespace assay::chain::stage {

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

  int fd() const { return fd_.get(); }
  // True once for each signal that came.
  bool happened() const {
    signalfd_siginfo info{};
    return ::read(fd_.get(), &info, sizeof info) == sizeof info;
  }

 private:
  sigset_t old_{};
  Fd fd_;
};

}  // namespace assay::chain::stage
