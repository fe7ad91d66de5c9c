#pragma once

// A log file of bounded size: it has the first bytes and the last bytes of the output.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace assay::chain::stage {

class BoundedLog {
 public:
  static constexpr std::uint64_t kHead = 32ULL << 20;  // bytes kept from the start
  static constexpr std::size_t kTail = 1U << 20;       // bytes kept from the end

  // Creates an empty file and its folders.
  static Result<BoundedLog> create(const std::string& path, std::uint64_t head = kHead,
                                   std::size_t tail = kTail);

  // Fails if the disk is full; the file keeps what was written before.
  Status append(std::string_view bytes);
  // Writes the number of omitted bytes, and the end. Call it once.
  Status close();

  std::uint64_t bytes() const { return seen_; }  // all bytes of the output, kept or not

 private:
  Status write(std::string_view bytes);

  Fd file_;
  std::string path_;
  std::uint64_t head_ = kHead;
  std::size_t tail_ = kTail;
  std::uint64_t seen_ = 0;
  std::uint64_t beyond_ = 0;  // bytes after the head
  std::string end_;           // the last tail_ to 2 · tail_ of them
};

}  // namespace assay::chain::stage
