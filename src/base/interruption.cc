#include "base/interruption.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>

namespace assay {
namespace {

std::atomic<bool> was_interrupted{false};
std::atomic<bool> in_a_hurry{false};
std::mutex mutex;
std::set<int> sockets;  // guarded by the mutex

}  // namespace

InterruptibleSocket::InterruptibleSocket(int socket)
    : copy_(socket < 0 ? -1 : ::fcntl(socket, F_DUPFD_CLOEXEC, 0)) {
  if (copy_ < 0) return;
  const std::scoped_lock lock(mutex);
  sockets.insert(copy_);
}

InterruptibleSocket::~InterruptibleSocket() {
  watch_ = {};  // ends the thread, which uses the members
  if (copy_ < 0) return;
  const std::scoped_lock lock(mutex);
  sockets.erase(copy_);
  ::close(copy_);
}

void InterruptibleSocket::expect(std::chrono::milliseconds limit) {
  const std::scoped_lock lock(mutex_);
  until_ = std::chrono::steady_clock::now() + hurried(limit);
  changed_.notify_one();
  if (!watch_.joinable())
    watch_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

void InterruptibleSocket::relax() {
  const std::scoped_lock lock(mutex_);
  until_.reset();
}

bool InterruptibleSocket::timed_out() const {
  const std::scoped_lock lock(mutex_);
  return timed_out_;
}

// A later limit wakes nobody: the thread looks at the limit again when the earlier one is over.
void InterruptibleSocket::watch(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (!until_) {
      changed_.wait(lock, stop, [this] { return until_.has_value(); });
    } else if (std::chrono::steady_clock::now() < *until_) {
      const auto until = *until_;
      changed_.wait_until(lock, stop, until, [this, until] { return until_ && *until_ < until; });
    } else {
      timed_out_ = true;
      if (in_a_hurry) was_interrupted = true;
      until_.reset();
      ::shutdown(copy_, SHUT_RDWR);
    }
  }
}

void interrupt_sockets() {
  was_interrupted = true;
  const std::scoped_lock lock(mutex);
  for (const int socket : sockets) ::shutdown(socket, SHUT_RDWR);
}

void hurry_sockets() { in_a_hurry = true; }

std::chrono::milliseconds hurried(std::chrono::milliseconds limit) {
  return in_a_hurry ? std::min(limit, kHurriedLimit) : limit;
}

bool interrupted() { return was_interrupted; }

}  // namespace assay
