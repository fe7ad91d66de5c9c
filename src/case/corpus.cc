#include "case/corpus.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/glob.h"
#include "case/diagnostic.h"

namespace assay {
namespace {

// Holds the longest allowed line, one more byte that proves a line too long, and the line end.
constexpr std::size_t kBufferBytes = kMaxLineBytes + (std::size_t{64} << 10U);

tl::unexpected<Error> cannot_read(const std::filesystem::path& file, int code) {
  return usage_error(
      fmt::format("cannot read {}: {}", file.string(), std::generic_category().message(code)));
}

}  // namespace

Result<CorpusReader> CorpusReader::open(const std::filesystem::path& file) {
  Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return cannot_read(file, errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return cannot_read(file, errno);
  if (S_ISDIR(status.st_mode)) return cannot_read(file, EISDIR);

  CorpusReader reader(file, std::move(fd));
  reader.buffer_.resize(kBufferBytes);
  ASSAY_CHECK(reader.fill());
  const std::string_view head(reader.buffer_.data(), reader.end_);
  if (head.find('\0') != std::string_view::npos) {
    return usage_error(
        fmt::format("{} is no corpus: it is binary, not text (unpack it first if it is compressed)",
                    file.string()));
  }
  reader.begin_ = head.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  return reader;
}

// Moves the unread bytes to the front and reads more behind them. There is always room, because
// lines that fill the buffer are not kept.
Status CorpusReader::fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  ssize_t bytes = 0;
  do {
    bytes = ::read(fd_.get(), buffer_.data() + end_, buffer_.size() - end_);
  } while (bytes < 0 && errno == EINTR);
  if (bytes < 0) return cannot_read(file_, errno);
  at_end_ = bytes == 0;
  end_ += static_cast<std::size_t>(bytes);
  return {};
}

// Reads the next line without its LF; false at the end.
Result<bool> CorpusReader::next_raw(std::string_view& line) {
  bool too_long = false;
  while (true) {
    const std::string_view unread(buffer_.data() + begin_, end_ - begin_);
    const std::size_t size = unread.find('\n');
    if (size != std::string_view::npos) {
      begin_ += size + 1;
      if (!too_long) line = unread.substr(0, size);
      return true;
    }
    if (at_end_) {
      begin_ = end_;
      if (!too_long) line = unread;
      return too_long || !unread.empty();
    }
    if (unread.size() > kMaxLineBytes) {
      // Keep the beginning in long_line_ and drop the rest.
      if (!too_long) long_line_.assign(unread.substr(0, kMaxLineBytes + 1));
      line = long_line_;
      too_long = true;
      begin_ = end_;
    }
    ASSAY_CHECK(fill());
  }
}

Result<bool> CorpusReader::next(CorpusLine& line) {
  while (true) {
    ASSAY_TRY(const bool more, next_raw(line.text));
    if (!more) return false;
    line.number = ++line_number_;
    line.text = line.text.substr(0, kMaxLineBytes + 1);
    if (line.text.ends_with('\r')) line.text.remove_suffix(1);
    const std::size_t first = line.text.find_first_not_of(" \t");
    if (first != std::string_view::npos && line.text[first] != '#') return true;
    if (!notes_) continue;
    if (line.text.starts_with(kCaptureNote) || line.text.starts_with(kCaptureHead)) return true;
  }
}

Result<std::vector<std::filesystem::path>> expand_corpus_pattern(const std::string& pattern) {
  std::error_code ignored;
  const bool wildcard = pattern.find_first_of("*?[") != std::string::npos;
  if (!wildcard || std::filesystem::exists(pattern, ignored)) {
    return std::vector<std::filesystem::path>{pattern};
  }
  const std::vector<std::string> paths = paths_like(pattern);
  if (paths.empty()) return usage_error(fmt::format("no file matches {}", pattern));
  std::vector<std::filesystem::path> files(paths.begin(), paths.end());
  std::ranges::sort(files);  // folder by folder
  return files;
}

Status each_corpus_line(
    std::span<const std::string> patterns,
    const std::function<Status(const std::filesystem::path&, const CorpusLine&)>& take) {
  std::vector<std::filesystem::path> files;
  for (const std::string& pattern : patterns) {
    ASSAY_TRY(const auto matches, expand_corpus_pattern(pattern));
    files.insert(files.end(), matches.begin(), matches.end());
  }
  CorpusLine line;
  for (const std::filesystem::path& file : files) {
    ASSAY_TRY(CorpusReader reader, CorpusReader::open(file));
    while (true) {
      ASSAY_TRY(const bool more, reader.next(line));
      if (!more) break;
      ASSAY_CHECK(take(file, line));
    }
  }
  return {};
}

Result<CorpusCheck> check_corpus(std::span<const std::string> patterns,
                                 const std::function<void(std::string_view)>& out) {
  CorpusCheck check;
  Case scratch;
  ASSAY_CHECK(each_corpus_line(patterns, [&](const auto& file, const CorpusLine& line) -> Status {
    const ParseStatus status = parse_line(line.text, scratch, [](const Case&) {});
    ++(status ? check.parsed : check.failed);
    if (status) return {};
    out(describe(status.error(), fmt::format("{}:{}", file.string(), line.number), line.text));
    return {};
  }));
  if (check.parsed + check.failed == 0) {
    return usage_error(
        fmt::format("no case in {}: one API call on each line is expected",
                    patterns.size() == 1 ? patterns[0] : std::string("any of the files")));
  }
  out(fmt::format("{} parsed, {} failed\n", check.parsed, check.failed));
  return check;
}

}  // namespace assay
