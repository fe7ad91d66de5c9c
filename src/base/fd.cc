#include "base/fd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace assay {

void Fd::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Result<FdPair> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("pipe");
  return FdPair{Fd(ends[0]), Fd(ends[1])};
}

Status set_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return errno_error("fcntl");
  return {};
}

Result<FdPair> make_socket_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return errno_error("socketpair");
  }
  return FdPair{Fd(ends[0]), Fd(ends[1])};
}

Result<Fd> make_memory_file(const char* name) {
  Fd fd(::memfd_create(name, MFD_CLOEXEC));
  if (!fd) return errno_error("memfd_create");
  return fd;
}

Result<Fd> make_nameless_file() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) return fail("no temporary folder: " + error.message());
  Fd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd) return fd;
  std::string name = folder / "assay-XXXXXX";  // a file system without nameless files
  fd = Fd(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd) return errno_error("cannot create a file in " + folder.string());
  ::unlink(name.c_str());
  return fd;
}

namespace {
// Whether other users can put names into the folder, such as a second one of a file of ours.
bool is_open_to_others(const std::filesystem::path& folder) {
  struct stat facts {};
  if (::stat(folder.empty() ? "." : folder.c_str(), &facts) != 0) return true;
  return (facts.st_uid != ::geteuid() && facts.st_uid != 0) ||
         (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}
}  // namespace

Result<Fd> open_output(const std::filesystem::path& path, int flags) {
  constexpr int kSafely = O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  Fd fd(::open(path.c_str(), (flags & ~O_TRUNC) | kSafely, 0644));
  if (!fd && errno == ELOOP) return fail("cannot write " + path.string() + ": it is a link");
  struct stat file {};
  if (!fd || ::fstat(fd.get(), &file) != 0) return errno_error("cannot write " + path.string());
  if (!S_ISREG(file.st_mode) && !S_ISCHR(file.st_mode)) {
    return fail("cannot write " + path.string() + ": it is no regular file");
  }
  if (S_ISREG(file.st_mode) && file.st_nlink > 1 && is_open_to_others(path.parent_path())) {
    return fail("cannot write " + path.string() + ": it is a file of another name, too");
  }
  if ((flags & O_TRUNC) != 0 && S_ISREG(file.st_mode) && ::ftruncate(fd.get(), 0) != 0) {
    return errno_error("cannot write " + path.string());
  }
  return fd;
}

Result<Fd> open_for_append(const std::filesystem::path& path) {
  return open_output(path, O_WRONLY | O_APPEND);
}

Result<std::string> read_file(const std::filesystem::path& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error("cannot read " + path.string());
  std::string text;
  std::array<char, 1 << 16> chunk;
  while (true) {
    const ssize_t got = ::read(fd.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("cannot read " + path.string());
    if (got == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

Status write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error("write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Status send_all(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno_error("send");
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<bool> read_exactly(int fd, std::span<std::byte> bytes) {
  bool started = false;
  while (!bytes.empty()) {
    const ssize_t got = ::read(fd, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("read");
    if (got == 0 && !started) return false;
    if (got == 0) return fail("read: the other side closed in the middle of a message");
    started = true;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

namespace {
constexpr std::size_t kMaxFds = 8;
}

Status send_with_fds(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  if (fds.size() > kMaxFds) return fail("send_with_fds: too many descriptors");
  iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFds * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return errno_error("sendmsg");
  // The descriptors travel with the first byte; the rest is plain data.
  return send_all(socket, bytes.subspan(static_cast<std::size_t>(sent)));
}

Result<Received> receive_with_fds(int socket, std::span<std::byte> buffer) {
  iovec piece{buffer.data(), buffer.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFds * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = -1;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno_error("recvmsg");
  Received received;
  received.bytes = static_cast<std::size_t>(got);
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::array<int, kMaxFds> fds{};
    std::memcpy(fds.data(), CMSG_DATA(header), count * sizeof(int));
    for (std::size_t i = 0; i < count; ++i) received.fds.emplace_back(fds[i]);
  }
  return received;
}

Result<Mapping> Mapping::map(int fd, std::size_t bytes, bool writable) {
  Mapping mapping;
  if (bytes == 0) return mapping;
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* data = ::mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (data == MAP_FAILED) return errno_error("mmap");
  mapping.data_ = static_cast<std::byte*>(data);
  mapping.size_ = bytes;
  return mapping;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace assay
