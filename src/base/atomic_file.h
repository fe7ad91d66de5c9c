#pragma once

// A file that appears under its name only when all of it is written. Until then it has none, and a
// process that is killed leaves nothing; where the file system has no such files, it is written
// under a name of its own beside it, which goes when the writing fails or is given up.

#include <filesystem>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace assay {

class AtomicFile {
 public:
  // What is there and no regular file (a pipe, a terminal, /dev/stdout) is written to as it is.
  static Result<AtomicFile> create(const std::filesystem::path& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  int fd() const { return fd_.get(); }
  Status write(std::string_view text);
  // Once, after the last write: replaces what had the name before.
  Status commit();

 private:
  AtomicFile() = default;
  Status name_unnamed();

  Fd fd_;
  bool in_place_ = false;
  std::filesystem::path path_;
  std::filesystem::path part_;  // empty: nothing to remove
};

// Replaces the file in one step.
Status write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace assay
