#include "base/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace assay {
namespace {

tl::unexpected<Error> cannot_write(const std::filesystem::path& path) {
  return errno_error("cannot write " + path.string());
}

// A file that nobody else has, not even one that was left behind by a process of our number.
Result<Fd> create_beside(const std::filesystem::path& path, std::filesystem::path& part) {
  constexpr int kTries = 1000;
  for (int number = 0; number < kTries; ++number) {
    part = path;
    part += fmt::format(".part.{}.{}", ::getpid(), number);
    Fd fd(::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (fd) return fd;
    if (errno != EEXIST) break;
  }
  return cannot_write(path);
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::filesystem::path& path) {
  AtomicFile file;
  file.path_ = path;
  std::error_code error;
  const auto there = std::filesystem::status(path, error);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) {
    file.fd_ = Fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file.fd_) return cannot_write(path);
    return file;
  }
  std::filesystem::path part;
  ASSAY_TRY(file.fd_, create_beside(path, part));
  file.part_ = std::move(part);
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::move(other.path_)),
      part_(std::exchange(other.part_, std::filesystem::path())) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  path_.swap(other.path_);
  part_.swap(other.part_);
  return *this;
}

AtomicFile::~AtomicFile() {
  if (!part_.empty()) ::unlink(part_.c_str());
}

Status AtomicFile::write(std::string_view text) {
  const Status written = write_all(fd_.get(), std::as_bytes(std::span(text)));
  if (!written) return fail("cannot write " + path_.string() + ": " + written.error().message);
  return {};
}

Status AtomicFile::commit() {
  // Some file systems tell of a full disk only here.
  if (::close(fd_.release()) != 0) return cannot_write(path_);
  if (part_.empty()) return {};
  if (::rename(part_.c_str(), path_.c_str()) != 0) return cannot_write(path_);
  part_.clear();
  return {};
}

}  // namespace assay
