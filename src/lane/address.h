#pragma once

// Sockets in Linux's abstract namespace: they leave no file behind, whatever kills their owner.

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace assay {

struct BoundSocket {
  Fd socket;            // SOCK_SEQPACKET, listening
  std::string address;  // what connect_to() takes
};

// Listens on an address that the kernel picks.
Result<BoundSocket> listen_anywhere(int backlog);

// Listens on this address; an error if somebody does already.
Result<Fd> listen_at(const std::string& address, int backlog);

// Connects, and makes sure that the listener belongs to our user.
Result<Fd> connect_to(const std::string& address);

}  // namespace assay
