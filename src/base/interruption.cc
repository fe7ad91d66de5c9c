#include "base/interruption.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>

namespace assay {
namespace {

std::atomic<bool> was_interrupted{false};
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
  if (copy_ < 0) return;
  const std::scoped_lock lock(mutex);
  sockets.erase(copy_);
  ::close(copy_);
}

void interrupt_sockets() {
  was_interrupted = true;
  const std::scoped_lock lock(mutex);
  for (const int socket : sockets) ::shutdown(socket, SHUT_RDWR);
}

bool interrupted() { return was_interrupted; }

}  // namespace assay
