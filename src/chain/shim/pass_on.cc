#include "chain/shim/pass_on.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace assay::chain::shim {
namespace {

int connect_to(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (std::strlen(path) >= sizeof address.sun_path) return -1;
  std::strcpy(address.sun_path, path);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  while (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == EINTR) continue;
    ::close(fd);
    return -1;
  }
  return fd;
}

bool write_whole(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::write(fd, text.data(), text.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// Sends the text with our input. Only its first byte carries the descriptor.
bool send_call(int socket, std::string_view text) {
  char first = text.front();
  iovec part{&first, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  constexpr int kInput = STDIN_FILENO;
  std::memcpy(CMSG_DATA(head), &kInput, sizeof kInput);
  ssize_t sent = 0;
  while ((sent = ::sendmsg(socket, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
  }
  if (sent != 1) {  // a closed input cannot be sent
    message.msg_control = nullptr;
    message.msg_controllen = 0;
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  }
  return sent == 1 && write_whole(socket, text.substr(1));
}

bool read_whole(int fd, char* to, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = ::read(fd, to, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

// Copies output until the command's end. Returns its exit code; -1 if the run is gone.
int relay(int socket) {
  std::array<char, kAnswerHead> head{};
  std::string bytes;
  while (read_whole(socket, head.data(), head.size())) {
    bytes.resize(bytes_after({head.data(), head.size()}));
    if (!read_whole(socket, bytes.data(), bytes.size())) return -1;
    const auto kind = static_cast<Answer>(head[0]);
    if (kind == Answer::exit) return static_cast<int>(std::strtol(bytes.c_str(), nullptr, 10));
    // Nobody may read it any more, as behind `| head -1`: then SIGPIPE ends us, as it would the
    // command.
    (void)write_whole(kind == Answer::errors ? STDERR_FILENO : STDOUT_FILENO, bytes);
  }
  return -1;
}

}  // namespace

int pass_on(const Call& call, const char* socket) {
  const int fd = connect_to(socket);
  if (fd < 0 || !send_call(fd, encode(call))) return -1;
  const int code = relay(fd);
  ::close(fd);
  return code;
}

void become(const std::vector<std::string>& argv) {
  std::vector<std::string> own = argv;
  if (const char* path = std::getenv(kPathVariable)) ::setenv("PATH", path, 1);
  const char* python = std::getenv(kPythonVariable);
  // As argv[0], too: by it Python finds its own environment.
  if (python != nullptr && is_python(own.front())) own.front() = python;
  std::vector<char*> words;
  words.reserve(own.size() + 1);
  for (std::string& word : own) words.push_back(word.data());
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
}

}  // namespace assay::chain::shim
