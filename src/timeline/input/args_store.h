#pragma once

// The args of events as their files wrote them. A gigabyte of trace has hundreds of megabytes of
// them, so they wait in a file without a name until a writer wants them.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace assay::timeline {

class ArgsStore {
 public:
  static constexpr unsigned kStoreShift = 48;  // Detail::args_at: the store's number is above

  static Result<ArgsStore> create();
  // Where the text lies now.
  std::uint64_t add(std::string_view text);
  // Empty, when it cannot be read back.
  std::string read(std::uint64_t at, std::uint32_t size);
  std::uint64_t bytes() const { return written_ + buffer_.size(); }

 private:
  explicit ArgsStore(Fd fd) : fd_(std::move(fd)) {}
  void flush();

  Fd fd_;
  std::uint64_t written_ = 0;
  std::string buffer_;
  std::string block_;  // what was read last
  std::uint64_t block_at_ = 0;
  Status status_;
};

}  // namespace assay::timeline
