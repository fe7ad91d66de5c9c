#pragma once

// A buffered sequential writer of an AtomicFile. finish() reports the first error; later output is
// dropped.

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
  static constexpr std::size_t kBufferBytes = 256U << 10U;  // fits a core's cache
  static constexpr std::size_t kMaxDigits = 24;

  explicit OutputFile(AtomicFile file) : file_(std::move(file)), buffer_(kBufferBytes) {}
  void put_slowly(std::string_view text);
  void flush();

  AtomicFile file_;
  std::vector<char> buffer_;
  std::size_t used_ = 0;
  std::int64_t second_ = -1;  // last second written by put_microseconds
  std::string second_text_;   // the same as text
  Status status_;
};

// Escapes a text for a JSON string, without the quotes.
std::string json_escaped(std::string_view text);

}  // namespace assay::timeline
