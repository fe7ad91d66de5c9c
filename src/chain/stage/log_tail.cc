#include "chain/stage/log_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace assay::chain::stage {
namespace {

constexpr std::size_t kLongestPiece = 64 * 1024;  // a longer one is handed on in pieces
constexpr int kMostChunks = 64;  // of one call, so that a flood does not hold it up

}  // namespace

LogTail::LogTail(std::string path) : path_(std::move(path)) {
  struct stat now {};
  if (::stat(path_.c_str(), &now) != 0) return;
  at_ = now.st_size;
  file_ = now.st_ino;
}

bool LogTail::read(const std::function<void(std::string_view)>& on_line) {
  const Fd file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat now {};
  if (!file || ::fstat(file.get(), &now) != 0) return false;
  if (now.st_ino != file_ || now.st_size < at_) {
    at_ = 0;
    file_ = now.st_ino;
    line_.clear();
  }
  std::array<char, 1 << 16> chunk;
  bool grew = false;
  for (int reads = 0; reads < kMostChunks; ++reads) {
    const ssize_t got = ::pread(file.get(), chunk.data(), chunk.size(), at_);
    if (got <= 0) break;
    grew = true;
    at_ += got;
    std::string_view bytes(chunk.data(), static_cast<std::size_t>(got));
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      line_.append(bytes.substr(0, end));
      if (end == std::string_view::npos && line_.size() < kLongestPiece) break;
      on_line(line_);
      line_.clear();
      if (end == std::string_view::npos) break;
      bytes.remove_prefix(end + 1);
    }
  }
  return grew;
}

}  // namespace assay::chain::stage
