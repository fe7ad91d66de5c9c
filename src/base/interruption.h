#pragma once

// How a signal, or a limit of time, ends a call that waits for another machine.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace assay {

// A connected socket that a library reads and writes with calls that block. While this object
// lives, interrupt_sockets() makes such a call fail at once, and expect() within a limit.
class InterruptibleSocket {
 public:
  explicit InterruptibleSocket(int socket);
  InterruptibleSocket(const InterruptibleSocket&) = delete;
  InterruptibleSocket& operator=(const InterruptibleSocket&) = delete;
  ~InterruptibleSocket();

  // Shuts the socket down after `limit`, unless expect() or relax() is called before.
  void expect(std::chrono::milliseconds limit);
  void relax();
  // Whether a limit of expect() was over.
  bool timed_out() const;

 private:
  void watch(const std::stop_token& stop);

  int copy_ = -1;  // a descriptor of our own: the library may close its own at any time
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<std::chrono::steady_clock::time_point> until_;  // guarded by mutex_
  bool timed_out_ = false;                                      // guarded by mutex_
  std::jthread watch_;                                          // started by the first expect()
};

// Shuts down every interruptible socket. Any thread may call it.
void interrupt_sockets();

// Says that a signal asks the program to end: from now on no wait for another machine takes longer
// than kHurriedLimit, and one that reaches it counts as interrupted.
void hurry_sockets();
constexpr std::chrono::milliseconds kHurriedLimit{5000};
// `limit`, or less after hurry_sockets().
std::chrono::milliseconds hurried(std::chrono::milliseconds limit);

// Whether a wait was interrupted. Loops that would connect again give up then.
bool interrupted();

}  // namespace assay
