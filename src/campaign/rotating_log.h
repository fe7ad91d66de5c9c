#pragma once

// A log that is cut into files of a size: NAME is the one being written, NAME.1 the one before it.

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/fd.h"

namespace assay {

class RotatingLog {
 public:
  static constexpr std::uint64_t kFileBytes = 64U << 20U;
  static constexpr int kFiles = 8;

  // At most `files` files of about `file_bytes` bytes stay. Begun where an earlier one ended.
  static Result<RotatingLog> open(std::filesystem::path path, std::uint64_t file_bytes = kFileBytes,
                                  int files = kFiles);

  // Cuts at the end of a line where there is one.
  Status write(std::string_view text);
  const std::filesystem::path& path() const { return path_; }

 private:
  RotatingLog(std::filesystem::path path, std::uint64_t file_bytes, int files)
      : path_(std::move(path)), file_bytes_(file_bytes), files_(files) {}
  Status rotate();

  std::filesystem::path path_;
  std::uint64_t file_bytes_;
  int files_;
  Fd file_;
  std::uint64_t written_ = 0;
};

}  // namespace assay
