#pragma once

// A file (base/atomic_file.h) that is written from front to back through a buffer. The first error
// is kept and told by finish(); what is written after it is dropped.

#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_file.h"
#include "base/result.h"

namespace assay::timeline {

class OutputFile {
 public:
  static Result<OutputFile> create(const std::filesystem::path& path);

  void put(std::string_view text) {
    if (text.size() > kBufferBytes - used_) {
      put_slowly(text);
      return;
    }
    std::memcpy(buffer_.data() + used_, text.data(), text.size());
    used_ += text.size();
  }
  void put_number(std::int64_t value) {
    if (kBufferBytes - used_ < kMaxDigits) flush();
    char* const at = buffer_.data() + used_;
    used_ += static_cast<std::size_t>(std::to_chars(at, at + kMaxDigits, value).ptr - at);
  }
  // Nanoseconds as decimal microseconds: 1700000000000771.484.
  void put_microseconds(std::int64_t nanos);

  Status finish();

 private:
  static constexpr std::size_t kBufferBytes = 256U << 10U;  // stays in a core's cache
  static constexpr std::size_t kMaxDigits = 24;

  explicit OutputFile(AtomicFile file) : file_(std::move(file)), buffer_(kBufferBytes) {}
  void put_slowly(std::string_view text);
  void flush();

  AtomicFile file_;
  std::vector<char> buffer_;
  std::size_t used_ = 0;
  std::int64_t second_ = -1;  // the last one that put_microseconds wrote,
  std::string second_text_;   // as text: events share it
  Status status_;
};

// The text as it stands between quotes in JSON.
std::string json_escaped(std::string_view text);

}  // namespace assay::timeline
