#pragma once

// Owned file descriptors and system calls on them. Every descriptor made here is close-on-exec.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace assay {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

struct FdPair {
  Fd first;   // of a pipe: the reading end
  Fd second;  // of a pipe: the writing end
};

Result<FdPair> make_pipe();
Result<FdPair> make_socket_pair();              // stream sockets, blocking
Result<Fd> make_memory_file(const char* name);  // anonymous shared memory, size 0, sparse
// A file in the temporary folder that has no name, or loses it at once, so that none is left behind
// by a process that is killed.
Result<Fd> make_nameless_file();
Status set_nonblocking(int fd);

// Opens a file to write with `flags` of open() and makes it if it is missing. Another user may have
// planted something else at its name: a link is not followed, nothing waits for a pipe; both are
// errors. Devices such as /dev/null are opened.
Result<Fd> open_output(const std::filesystem::path& path, int flags);
Result<Fd> open_for_append(const std::filesystem::path& path);
Result<std::string> read_file(const std::filesystem::path& path);

// Write or read exactly `bytes`. read_exactly() returns false if the other side closed before the
// first byte; a close in the middle is an error.
Status write_all(int fd, std::span<const std::byte> bytes);
// write_all() for sockets: a dead peer is an error, not a SIGPIPE.
Status send_all(int socket, std::span<const std::byte> bytes);
Result<bool> read_exactly(int fd, std::span<std::byte> bytes);

// Sends one message of at most a few kilobytes with descriptors (SCM_RIGHTS).
Status send_with_fds(int socket, std::span<const std::byte> bytes, std::span<const int> fds);
struct Received {
  std::size_t bytes = 0;  // 0: the other side has closed
  std::vector<Fd> fds;
};
Result<Received> receive_with_fds(int socket, std::span<std::byte> buffer);

// A mapping of a file. The destructor unmaps it.
class Mapping {
 public:
  Mapping() = default;
  static Result<Mapping> map(int fd, std::size_t bytes, bool writable);
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace assay
