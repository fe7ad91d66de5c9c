#pragma once

// Splits output that arrives in pieces into lines, without the empty ones. A carriage return ends a
// line too: progress bars write nothing else.

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

namespace assay::chain::stage {

using LineHandler = std::function<void(std::string_view)>;  // without its line end

class LineSplitter {
 public:
  // Calls the handler for each line that ends in these bytes. A line longer than 64 KiB arrives in
  // pieces.
  void take(std::string_view bytes, const LineHandler& on_line);
  // Passes on the last line, which has no line end.
  void end(const LineHandler& on_line);
  void clear() { line_.clear(); }

 private:
  std::string line_;
};

class LogTail {
 public:
  // The file need not exist yet. Contents from before the construction are skipped, unless the file
  // becomes shorter.
  explicit LogTail(std::string path);

  // Passes on the whole lines since the last call. Returns true if there were any bytes.
  bool read(const LineHandler& on_line);

 private:
  std::string path_;
  off_t at_ = 0;
  ino_t file_ = 0;
  LineSplitter lines_;
};

}  // namespace assay::chain::stage
