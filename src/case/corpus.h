#pragma once

// Corpus files: text with one case on each line. Blank lines and lines that begin with '#' are
// skipped; line ends may be LF or CRLF; a byte order mark at the front is ignored. The log files of
// engineV2 that list configs (api_config_*.txt, checkpoint.txt) are corpus files too.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "case/parser.h"

namespace assay {

struct CorpusLine {
  std::size_t number = 0;  // 1-based, of the file
  std::string_view text;   // without its end; valid until the next line is read
};

// Reads a file line by line in bounded memory: of a line longer than kMaxLineBytes only its first
// kMaxLineBytes + 1 bytes are given, which the parser refuses.
class CorpusReader {
 public:
  // A file that is missing, unreadable or not text is a usage error.
  static Result<CorpusReader> open(const std::filesystem::path& file);
  // False at the end of the file.
  Result<bool> next(CorpusLine& line);

 private:
  CorpusReader(std::filesystem::path file, Fd fd) : file_(std::move(file)), fd_(std::move(fd)) {}
  Result<bool> next_raw(std::string_view& line);
  Status fill();

  std::filesystem::path file_;
  Fd fd_;
  std::vector<char> buffer_;
  std::string long_line_;  // the beginning of a line that is too long
  std::size_t begin_ = 0;  // what is unread of the buffer
  std::size_t end_ = 0;
  std::size_t line_number_ = 0;
  bool at_end_ = false;
};

// The files that a path or a pattern (*, ?, […]) names, sorted. A path that exists is taken as it
// is; a pattern that matches nothing is a usage error. No shell is involved.
Result<std::vector<std::filesystem::path>> expand_corpus_pattern(const std::string& pattern);

// Gives every line of the files that the patterns name to `take`, file by file, and ends with the
// first error that it returns. A pattern that matches nothing is an error before any file is read.
Status each_corpus_line(
    std::span<const std::string> patterns,
    const std::function<Status(const std::filesystem::path&, const CorpusLine&)>& take);

struct CorpusCheck {
  std::size_t parsed = 0;  // lines
  std::size_t failed = 0;
};

// Parses every line of the files that the patterns name, and writes each failure and at the end
// "N parsed, M failed" to `out`. Files without a single case are a usage error.
Result<CorpusCheck> check_corpus(std::span<const std::string> patterns, std::ostream& out);

}  // namespace assay
