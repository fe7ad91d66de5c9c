#pragma once

// Corpus files: one case per line. Blank lines and lines that begin with '#' are skipped. Line ends
// are LF or CRLF, and a byte-order mark is ignored. engineV2's lists of configs (api_config_*.txt,
// checkpoint.txt) are corpus files too.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "case/parser.h"

namespace assay {

// A capture (`assay capture`) is a corpus whose first line begins with this, and has a note after
// each case.
inline constexpr std::string_view kCaptureHead = "# assay capture ";
inline constexpr std::string_view kCaptureNote = "#:";

struct CorpusLine {
  std::size_t number = 0;  // in the file, from 1
  std::string_view text;   // without line end; valid until the next line is read
};

// Reads a file line by line in bounded memory. A line longer than kMaxLineBytes is cut to
// kMaxLineBytes + 1 bytes, which the parser refuses.
class CorpusReader {
 public:
  // Opens a file. A file that is missing, unreadable or not text is a usage error.
  static Result<CorpusReader> open(const std::filesystem::path& file);
  // Heads and notes of captures are lines from now on.
  void keep_notes() { notes_ = true; }
  // Reads the next line; false at the end of the file.
  Result<bool> next(CorpusLine& line);

 private:
  CorpusReader(std::filesystem::path file, Fd fd) : file_(std::move(file)), fd_(std::move(fd)) {}
  Result<bool> next_raw(std::string_view& line);
  Status fill();

  std::filesystem::path file_;
  Fd fd_;
  std::vector<char> buffer_;
  std::string long_line_;  // the kept part of a line that is too long
  std::size_t begin_ = 0;  // start of the unread bytes in the buffer
  std::size_t end_ = 0;
  std::size_t line_number_ = 0;
  bool at_end_ = false;
  bool notes_ = false;
};

// Returns the files of a path or a glob pattern (*, ?, […]), sorted. An existing path is used as it
// is. A pattern without a match is a usage error. No shell is involved.
Result<std::vector<std::filesystem::path>> expand_corpus_pattern(const std::string& pattern);

// Passes every line of the files to `take`, file by file, and stops at its first error. A pattern
// without a match is an error before any file is read.
Status each_corpus_line(
    std::span<const std::string> patterns,
    const std::function<Status(const std::filesystem::path&, const CorpusLine&)>& take);

struct CorpusCheck {
  std::size_t parsed = 0;
  std::size_t failed = 0;
};

// Parses every line of the files. Passes each failure, then "N parsed, M failed", to `out`. Files
// without any case are a usage error.
Result<CorpusCheck> check_corpus(std::span<const std::string> patterns,
                                 const std::function<void(std::string_view)>& out);

}  // namespace assay
