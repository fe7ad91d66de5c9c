#pragma once

// The new lines of a file that another process writes, as they come.

#include <sys/types.h>

#include <string>

#include "chain/stage/line_splitter.h"

namespace assay::chain::stage {

class LogTail {
 public:
  // The file may come later, or be made anew: what lies there when the tail is made is old and not
  // read, unless it becomes shorter.
  explicit LogTail(std::string path);

  // Hands on the whole lines that came since the last call; whether any byte came.
  bool read(const LineHandler& on_line);

 private:
  std::string path_;
  off_t at_ = 0;
  ino_t file_ = 0;
  LineSplitter lines_;
};

}  // namespace assay::chain::stage
