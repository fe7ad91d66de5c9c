#include "base/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace assay {
namespace {

tl::unexpected<Error> cannot_write(const std::filesystem::path& path) {
  return errno_error("cannot write " + path.string());
}

// Calls `make` with names in the folder of `path` until one is free. A killed process with our pid
// may have left some behind. Returns the last result of `make`, negative if it failed.
template <typename Make>
int with_free_name(const std::filesystem::path& path, std::filesystem::path& part, Make make) {
  constexpr int kTries = 1000;
  int made = -1;
  for (int number = 0; number < kTries; ++number) {
    part = path;
    part += fmt::format(".part.{}.{}", ::getpid(), number);
    made = make(part.c_str());
    if (made >= 0 || errno != EEXIST) return made;
  }
  return made;
}

// A nameless file (O_TMPFILE) vanishes with the process. Not every file system supports them.
Fd create_unnamed(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  return Fd(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644));
}

bool is_link_of_others(const std::filesystem::path& path) {
  struct stat there {};
  return ::lstat(path.c_str(), &there) == 0 && S_ISLNK(there.st_mode) &&
         there.st_uid != ::geteuid() && there.st_uid != 0;
}

// The pipe or device of this name if it is ours or the system's; none for other files, and for a
// pipe that nobody reads.
Fd open_special(const std::filesystem::path& path) {
  struct stat there {};
  if (is_link_of_others(path) || ::stat(path.c_str(), &there) != 0 || S_ISREG(there.st_mode) ||
      S_ISDIR(there.st_mode)) {
    return {};
  }
  Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat file {};
  if (!fd || ::fstat(fd.get(), &file) != 0) return {};
  const bool trusted = file.st_uid == ::geteuid() || file.st_uid == 0;
  if (!trusted || S_ISREG(file.st_mode)) return {};
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags & ~O_NONBLOCK) != 0) return {};
  return fd;
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::filesystem::path& path) {
  ASSAY_CHECK(check_links(path.parent_path()));
  AtomicFile file;
  file.path_ = path;
  file.fd_ = open_special(path);
  file.in_place_ = static_cast<bool>(file.fd_);
  if (file.in_place_) return file;
  file.fd_ = create_unnamed(path);
  if (file.fd_) return file;
  std::filesystem::path part;
  file.fd_ = Fd(with_free_name(path, part, [](const char* name) {
    return ::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  }));
  if (!file.fd_) return cannot_write(path);
  file.part_ = std::move(part);
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : fd_(std::move(other.fd_)),
      in_place_(other.in_place_),
      path_(std::move(other.path_)),
      part_(std::exchange(other.part_, std::filesystem::path())) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(in_place_, other.in_place_);
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

Status AtomicFile::name_unnamed() {
  std::filesystem::path part;
  const std::string own = fmt::format("/proc/self/fd/{}", fd_.get());
  const int linked = with_free_name(path_, part, [&](const char* name) {
    return ::linkat(AT_FDCWD, own.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW);
  });
  if (linked != 0) return cannot_write(path_);
  part_ = std::move(part);
  return {};
}

Status AtomicFile::commit() {
  if (!in_place_ && part_.empty()) ASSAY_CHECK(name_unnamed());
  // Some file systems report a full disk only here.
  if (::close(fd_.release()) != 0) return cannot_write(path_);
  if (in_place_) return {};
  if (::rename(part_.c_str(), path_.c_str()) != 0) return cannot_write(path_);
  part_.clear();
  return {};
}

Status write_file(const std::filesystem::path& path, std::string_view text) {
  ASSAY_TRY(AtomicFile file, AtomicFile::create(path));
  ASSAY_CHECK(file.write(text));
  return file.commit();
}

Status check_links(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path each = std::filesystem::absolute(path, error).lexically_normal();
  if (!each.has_filename()) each = each.parent_path();  // it ends with a slash
  for (; each.has_relative_path(); each = each.parent_path()) {
    if (is_link_of_others(each)) {
      return usage_error(each.string() +
                         " is a link that another user has made; name what it leads to instead");
    }
  }
  return {};
}

Status make_folder(const std::filesystem::path& folder) {
  if (folder.empty()) return {};
  ASSAY_CHECK(check_links(folder));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return usage_error(fmt::format("cannot write to {}: {}", folder.string(), error.message()));
  return {};
}

}  // namespace assay
