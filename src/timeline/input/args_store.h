#pragma once

// Keeps the args of events as raw text in a nameless file: a gigabyte of trace has hundreds of
// megabytes of args.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "timeline/model.h"

namespace assay::timeline {

class ArgsStore {
 public:
  static constexpr unsigned kStoreShift =
      48;  // Detail::args_at has the store's index above this bit

  static Result<ArgsStore> create();
  // The offset of the added text.
  std::uint64_t add(std::string_view text);
  // Empty if reading fails.
  std::string read(std::uint64_t at, std::uint32_t size);
  std::uint64_t bytes() const { return written_ + buffer_.size(); }

 private:
  explicit ArgsStore(Fd fd) : fd_(std::move(fd)) {}
  void flush();

  Fd fd_;
  std::uint64_t written_ = 0;
  std::string buffer_;
  std::string block_;  // the last block read
  std::uint64_t block_at_ = 0;
  Status status_;
};

// The args of a slice as a JSON object: the text of its file, else its known properties. Empty
// without either.
std::string args_text(const Trace& trace, const Slice& slice);

}  // namespace assay::timeline
