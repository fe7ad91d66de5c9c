#include "chain/script/call_server.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace assay::chain::script {
namespace {

constexpr std::size_t kLongestCall = 16 << 20;  // the kernel allows 2 MB of arguments each
constexpr int kBacklog = 128;

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

void CallLine::add_to(std::vector<pollfd>& fds) const {
  if (gone_) return;
  fds.push_back({socket_.get(), static_cast<short>(POLLIN | (waiting_.empty() ? 0 : POLLOUT)), 0});
}

std::optional<shim::Call> CallLine::receive() {
  std::array<char, 1 << 16> chunk;
  while (!gone_) {
    iovec part{chunk.data(), chunk.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space.data();
    message.msg_controllen = space.size();
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && would_block()) break;
    if (got <= 0) {
      gone_ = true;
      break;
    }
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
         head = CMSG_NXTHDR(&message, head)) {
      if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(head), sizeof fd);
      input_ = Fd(fd);
    }
    incoming_.append(chunk.data(), static_cast<std::size_t>(got));
    if (incoming_.size() > kLongestCall || has_call_) gone_ = true;
  }
  std::string_view rest = incoming_;
  std::optional<shim::Call> call = has_call_ ? std::nullopt : shim::take_call(rest);
  if (call) {
    has_call_ = true;
    incoming_.clear();
  }
  return call;
}

void CallLine::send(shim::Answer kind, std::string_view bytes) {
  if (gone_) return;
  waiting_ += shim::answer_head(kind, bytes.size());
  waiting_ += bytes;
  flush();
}

void CallLine::flush() {
  while (!gone_ && !waiting_.empty()) {
    const ssize_t sent =
        ::send(socket_.get(), waiting_.data(), waiting_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && would_block()) return;
    if (sent < 0) gone_ = true;
    if (sent > 0) waiting_.erase(0, static_cast<std::size_t>(sent));
  }
}

Result<CallServer> CallServer::open(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = path.string();
  if (name.size() >= sizeof address.sun_path) {
    return usage_error("the temporary folder's path is too long for a socket: " + name);
  }
  std::strcpy(address.sun_path, name.c_str());
  Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener ||
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener.get(), kBacklog) != 0) {
    return errno_error("cannot listen at " + name);
  }
  return CallServer(std::move(listener));
}

std::unique_ptr<CallLine> CallServer::accept() {
  while (true) {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return nullptr;
    ucred peer{};
    socklen_t size = sizeof peer;
    const bool known = ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    if (known && peer.uid == ::geteuid()) return std::make_unique<CallLine>(std::move(socket));
  }
}

}  // namespace assay::chain::script
