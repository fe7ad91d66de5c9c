#pragma once

// Follows a file that another process writes.

#include <sys/types.h>

#include <string>

#include "chain/stage/line_splitter.h"

namespace assay::chain::stage {

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
