#include "chain/stage/line_splitter.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/fd.h"

namespace assay::chain::stage {
namespace {

constexpr std::size_t kMaxLine = 64 * 1024;

}  // namespace

void LineSplitter::take(std::string_view bytes, const LineHandler& on_line) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find_first_of("\r\n");
    line_.append(bytes.substr(0, end));
    if (end == std::string_view::npos && line_.size() < kMaxLine) return;
    this->end(on_line);
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
  }
}

void LineSplitter::end(const LineHandler& on_line) {
  if (!line_.empty() && on_line) on_line(line_);
  line_.clear();
}

namespace {

constexpr int kMostChunks = 64;  // per call, so that a flood does not block the caller

}  // namespace

LogTail::LogTail(std::string path) : path_(std::move(path)) {
  struct stat now {};
  if (::stat(path_.c_str(), &now) != 0) return;
  at_ = now.st_size;
  file_ = now.st_ino;
}

bool LogTail::read(const LineHandler& on_line) {
  const Fd file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat now {};
  if (!file || ::fstat(file.get(), &now) != 0) return false;
  if (now.st_ino != file_ || now.st_size < at_) {
    at_ = 0;
    file_ = now.st_ino;
    lines_.clear();
  }
  std::array<char, 1 << 16> chunk;
  bool grew = false;
  for (int reads = 0; reads < kMostChunks; ++reads) {
    const ssize_t got = ::pread(file.get(), chunk.data(), chunk.size(), at_);
    if (got <= 0) break;
    grew = true;
    at_ += got;
    lines_.take({chunk.data(), static_cast<std::size_t>(got)}, on_line);
  }
  return grew;
}

}  // namespace assay::chain::stage
