#pragma once

// Sockets in Linux's abstract namespace, which leave no file behind when their owner is killed.

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace assay {

struct BoundSocket {
  Fd socket;            // SOCK_SEQPACKET, listening
  std::string address;  // for connect_to()
};

// Listens on an address that the kernel picks.
Result<BoundSocket> listen_anywhere(int backlog);

// Listens on this address; an error if a socket has it already.
Result<Fd> listen_at(const std::string& address, int backlog);

// Connects, and makes sure that the listener belongs to our user. Waits while the listener's queue
// is full.
Result<Fd> connect_to(const std::string& address);

// The same without waiting: a full queue is an error, and the socket does not block.
Result<Fd> connect_now(const std::string& address);

}  // namespace assay
