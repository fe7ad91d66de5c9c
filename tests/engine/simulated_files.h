#pragma once

// Pipes, sockets and events of a simulated system. They have numbers above those of real
// descriptors.

#include <sys/epoll.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace assay::testing {

class SimulatedFiles {
 public:
  // `changed` is called for each descriptor whose readiness may have become more.
  explicit SimulatedFiles(std::function<void(int)> changed) : changed_(std::move(changed)) {}

  static bool has(int fd) { return fd >= kFirst; }
  std::size_t open() const;  // descriptors

  // As the system calls of these names: errno and -1 where they fail. All descriptors close on
  // exec.
  int pipe(int* ends);
  int socketpair(int* ends);
  int eventfd(std::uint64_t count);
  int duplicate(int fd);
  int close(int fd);
  // EAGAIN: nothing is there, or no room. `blocks` is then set if the call would have waited.
  ssize_t read(int fd, void* bytes, std::size_t size, bool& blocks);
  ssize_t write(int fd, const void* bytes, std::size_t size, bool& blocks);
  // What epoll and poll report of it.
  std::uint32_t ready(int fd) const;
  int flags(int fd) const;
  void set_flags(int fd, int flags);

 private:
  static constexpr int kFirst = 1 << 20;
  static constexpr std::size_t kRoom = 1 << 16;
  // Bytes on their way from one end to the other.
  struct Stream {
    std::string bytes;
    bool has_writer = true;
    bool has_reader = true;
  };
  // What descriptors refer to; copies of a descriptor share it.
  struct File {
    ~File();
    std::shared_ptr<Stream> in, out;
    std::uint64_t count = 0;  // of an event: without streams
    int flags = 0;
  };
  int add(std::shared_ptr<File> file);
  std::shared_ptr<File>& at(int fd) { return files_[static_cast<std::size_t>(fd - kFirst)]; }
  const File& at(int fd) const { return *files_[static_cast<std::size_t>(fd - kFirst)]; }
  // Calls changed_ for the descriptors that have the stream at this side.
  void change(std::shared_ptr<Stream> File::*side, const Stream* stream);

  std::function<void(int)> changed_;
  std::vector<std::shared_ptr<File>> files_;  // by number; null: closed
};

}  // namespace assay::testing
