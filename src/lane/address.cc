#include "lane/address.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace assay {

Result<BoundSocket> listen_anywhere(int backlog) {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return errno_error("socket");
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  // An empty name asks the kernel for a free abstract one.
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof(sa_family_t)) != 0) {
    return errno_error("bind");
  }
  socklen_t size = sizeof name;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    return errno_error("getsockname");
  }
  if (::listen(socket.get(), backlog) != 0) return errno_error("listen");
  // Without the leading zero byte, which marks an abstract name.
  const std::size_t length = size - offsetof(sockaddr_un, sun_path) - 1;
  return BoundSocket{std::move(socket), std::string(name.sun_path + 1, length)};
}

namespace {
struct AbstractName {
  sockaddr_un name{};
  socklen_t size = 0;
};

Result<AbstractName> abstract_name(const std::string& address) {
  AbstractName made;
  made.name.sun_family = AF_UNIX;
  if (address.size() + 1 > sizeof made.name.sun_path) return fail("address too long");
  std::memcpy(made.name.sun_path + 1, address.data(), address.size());
  made.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + address.size());
  return made;
}
}  // namespace

Result<Fd> listen_at(const std::string& address, int backlog) {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return errno_error("socket");
  ASSAY_TRY(const AbstractName at, abstract_name(address));
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at.name), at.size) != 0) {
    return errno_error("bind");
  }
  if (::listen(socket.get(), backlog) != 0) return errno_error("listen");
  return socket;
}

namespace {
Result<Fd> connected(const std::string& address, int flags) {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
  if (!socket) return errno_error("socket");
  ASSAY_TRY(const AbstractName at, abstract_name(address));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&at.name), at.size) != 0) {
    return errno_error("cannot reach the fork server");
  }
  ucred peer{};
  socklen_t peer_size = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) != 0) {
    return errno_error("getsockopt");
  }
  if (peer.uid != ::getuid()) return fail("the fork server's address belongs to another user");
  return socket;
}
}  // namespace

Result<Fd> connect_to(const std::string& address) { return connected(address, 0); }

Result<Fd> connect_now(const std::string& address) { return connected(address, SOCK_NONBLOCK); }

}  // namespace assay
