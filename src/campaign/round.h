#pragma once

// One child process that runs to its end, with all it says, while signals to us are passed on.

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <string_view>

#include "base/fd.h"
#include "base/process.h"

namespace assay {

// Keeps SIGINT and SIGTERM from their usual effect as long as it lives: they are read instead.
class HeldSignals {
 public:
  static Result<HeldSignals> hold();
  HeldSignals(HeldSignals&& other) noexcept;
  HeldSignals& operator=(HeldSignals&&) = delete;
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals();

  int fd() const { return fd_.get(); }
  // The number of one that has come.
  int next() const;

 private:
  HeldSignals(Fd fd, const sigset_t& before) : fd_(std::move(fd)), before_(before) {}
  Fd fd_;
  sigset_t before_;
};

// Spawns `options` with both its outputs in `hear`. `stopped` becomes true when a signal has come,
// which the child gets too.
Result<ExitStatus> run_heard(SpawnOptions options, const HeldSignals& signals,
                             const std::function<Status(std::string_view)>& hear,
                             const std::function<void()>& started, bool& stopped);

}  // namespace assay
