#pragma once

// How a signal ends a call that waits for another machine.

namespace assay {

// A connected socket that a library reads and writes with calls that block. While this object
// lives, interrupt_sockets() makes such a call fail at once.
class InterruptibleSocket {
 public:
  explicit InterruptibleSocket(int socket);
  InterruptibleSocket(const InterruptibleSocket&) = delete;
  InterruptibleSocket& operator=(const InterruptibleSocket&) = delete;
  ~InterruptibleSocket();

 private:
  int copy_ = -1;  // a descriptor of our own: the library may close its own at any time
};

// Shuts down every interruptible socket. Any thread may call it.
void interrupt_sockets();

// Whether interrupt_sockets() was called. Loops that would connect again give up then.
bool interrupted();

}  // namespace assay
