#pragma once

// SIGINT and SIGTERM for a program with an event loop. A thread of its own takes them, so a loop
// that is blocked cannot make the program deaf.

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "base/fd.h"
#include "base/result.h"

namespace assay {

// While it lives the two signals do not end the program. At most one lives at a time.
class SignalWatch {
 public:
  struct Limits {
    std::chrono::milliseconds loop{800};  // for the loop to take a signal
    std::chrono::milliseconds end{5000};  // after that the program ends, with exit code 130
  };

  // `deliver` is called in the watch's thread for every signal; it hands the signal to the loop,
  // which calls taken(). A loop that has not taken a signal within `limits.loop` is blocked: then
  // interrupt_sockets() is called. The program ends with exit code 130 at a second signal that is
  // not taken either, or when `limits.end` is over.
  static Result<std::unique_ptr<SignalWatch>> start(std::function<void()> deliver, Limits limits);
  static Result<std::unique_ptr<SignalWatch>> start(std::function<void()> deliver) {
    return start(std::move(deliver), Limits());
  }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();  // restores what the signals did before

  void taken() { ++taken_; }

 private:
  SignalWatch(std::function<void()> deliver, Limits limits, Fd signals, Fd stop);
  void watch();
  void look(std::uint64_t waiting, std::chrono::steady_clock::duration since);

  std::function<void()> deliver_;
  Limits limits_;
  Fd signals_;  // counts the signals that have come
  Fd stop_;
  std::atomic<std::uint64_t> taken_{0};
  bool told_ = false;
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
  std::thread thread_;
};

}  // namespace assay
