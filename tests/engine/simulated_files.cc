#include "simulated_files.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace assay::testing {

SimulatedFiles::File::~File() {
  if (in) in->has_reader = false;
  if (out) out->has_writer = false;
}

std::size_t SimulatedFiles::open() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      files_, [](const std::shared_ptr<File>& file) { return file != nullptr; }));
}

// The lowest free number, as a kernel gives it: a closed descriptor's number comes again soon.
int SimulatedFiles::add(std::shared_ptr<File> file) {
  const auto free = std::ranges::find(files_, nullptr);
  const auto index = free - files_.begin();
  if (free == files_.end()) files_.emplace_back();
  files_[static_cast<std::size_t>(index)] = std::move(file);
  return kFirst + static_cast<int>(index);
}

int SimulatedFiles::pipe(int* ends) {
  const auto reading = std::make_shared<File>();
  const auto writing = std::make_shared<File>();
  reading->in = writing->out = std::make_shared<Stream>();
  ends[0] = add(reading);
  ends[1] = add(writing);
  return 0;
}

int SimulatedFiles::socketpair(int* ends) {
  const auto one = std::make_shared<File>();
  const auto other = std::make_shared<File>();
  one->in = other->out = std::make_shared<Stream>();
  other->in = one->out = std::make_shared<Stream>();
  ends[0] = add(one);
  ends[1] = add(other);
  return 0;
}

int SimulatedFiles::eventfd(std::uint64_t count) {
  const auto event = std::make_shared<File>();
  event->count = count;
  return add(event);
}

int SimulatedFiles::duplicate(int fd) { return add(at(fd)); }

int SimulatedFiles::close(int fd) {
  std::shared_ptr<File> closed = std::move(at(fd));
  if (!closed) return errno = EBADF, -1;
  const std::shared_ptr<Stream> in = closed->in;
  const std::shared_ptr<Stream> out = closed->out;
  closed.reset();
  if (in && !in->has_reader) change(&File::out, in.get());
  if (out && !out->has_writer) change(&File::in, out.get());
  return 0;
}

ssize_t SimulatedFiles::read(int fd, void* bytes, std::size_t size, bool& blocks) {
  File& file = *at(fd);
  if (!file.in) {
    if (file.count == 0) return blocks = (file.flags & O_NONBLOCK) == 0, errno = EAGAIN, -1;
    std::memcpy(bytes, &file.count, sizeof file.count);
    file.count = 0;
    return sizeof file.count;
  }
  std::string& there = file.in->bytes;
  if (there.empty() && !file.in->has_writer) return 0;
  if (there.empty()) return blocks = (file.flags & O_NONBLOCK) == 0, errno = EAGAIN, -1;
  const std::size_t got = std::min(size, there.size());
  const bool was_full = there.size() >= kRoom;
  std::memcpy(bytes, there.data(), got);
  there.erase(0, got);
  if (was_full) change(&File::out, file.in.get());
  return static_cast<ssize_t>(got);
}

ssize_t SimulatedFiles::write(int fd, const void* bytes, std::size_t size, bool& blocks) {
  File& file = *at(fd);
  if (!file.out) {
    ++file.count;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      if (files_[i].get() == &file) changed_(kFirst + static_cast<int>(i));
    }
    return static_cast<ssize_t>(size);
  }
  if (!file.out->has_reader) return errno = EPIPE, -1;
  const std::size_t room = kRoom - std::min(kRoom, file.out->bytes.size());
  if (room == 0) return blocks = (file.flags & O_NONBLOCK) == 0, errno = EAGAIN, -1;
  const std::size_t taken = std::min(size, room);
  file.out->bytes.append(static_cast<const char*>(bytes), taken);
  change(&File::in, file.out.get());
  return static_cast<ssize_t>(taken);
}

std::uint32_t SimulatedFiles::ready(int fd) const {
  const File& file = at(fd);
  if (!file.in && !file.out) return EPOLLOUT | (file.count > 0 ? EPOLLIN : 0U);
  std::uint32_t events = 0;
  const bool is_socket = file.in && file.out;
  if (file.in) {
    if (!file.in->bytes.empty()) events |= EPOLLIN;
    if (!file.in->has_writer) events |= is_socket ? EPOLLIN | EPOLLRDHUP | EPOLLHUP : EPOLLHUP;
  }
  if (file.out) {
    if (!file.out->has_reader) {
      events |= is_socket ? EPOLLOUT : EPOLLOUT | EPOLLERR;
    } else if (file.out->bytes.size() < kRoom) {
      events |= EPOLLOUT;
    }
  }
  return events;
}

int SimulatedFiles::flags(int fd) const { return at(fd).flags; }

void SimulatedFiles::set_flags(int fd, int flags) { at(fd)->flags = flags; }

void SimulatedFiles::change(std::shared_ptr<Stream> File::*side, const Stream* stream) {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (files_[i] && (*files_[i].*side).get() == stream) {
      changed_(kFirst + static_cast<int>(i));
    }
  }
}

}  // namespace assay::testing
