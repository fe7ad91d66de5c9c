#pragma once

// A log file that a flood cannot fill the disk with: the beginning is written as it comes, and of
// the rest only the end is kept.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace assay::chain::stage {

class BoundedLog {
 public:
  static constexpr std::uint64_t kHead = 32ULL << 20;  // bytes kept from the beginning
  static constexpr std::size_t kTail = 1U << 20;       // bytes kept from the end

  // Makes the file empty; its folders are made too.
  static Result<BoundedLog> create(const std::string& path, std::uint64_t head = kHead,
                                   std::size_t tail = kTail);

  // Fails when the disk is full; what came before is in the file.
  Status append(std::string_view bytes);
  // Writes how much was left out, and the end. Once.
  Status close();

  std::uint64_t bytes() const { return seen_; }  // all that came, kept or not

 private:
  Status write(std::string_view bytes);

  Fd file_;
  std::string path_;
  std::uint64_t head_ = kHead;
  std::size_t tail_ = kTail;
  std::uint64_t seen_ = 0;
  std::uint64_t beyond_ = 0;  // bytes that did not fit the head
  std::string end_;           // at least the last tail_ of them, at most twice as many
};

}  // namespace assay::chain::stage
