#include "timeline/input/args_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <span>

namespace assay::timeline {

Result<ArgsStore> ArgsStore::create() {
  ASSAY_TRY(Fd fd, make_nameless_file());
  return ArgsStore(std::move(fd));
}

std::uint64_t ArgsStore::add(std::string_view text) {
  constexpr std::size_t kBlock = 1U << 18U;
  const std::uint64_t at = written_ + buffer_.size();
  buffer_ += text;
  if (buffer_.size() >= kBlock) flush();
  return at;
}

void ArgsStore::flush() {
  if (status_) status_ = write_all(fd_.get(), std::as_bytes(std::span(buffer_)));
  written_ += buffer_.size();
  buffer_.clear();
}

std::string ArgsStore::read(std::uint64_t at, std::uint32_t size) {
  constexpr std::size_t kReadAhead = 1U << 16U;
  if (!buffer_.empty()) flush();
  if (!status_ || at + size > written_) return {};
  if (at < block_at_ || at + size > block_at_ + block_.size()) {
    block_.resize(std::max<std::size_t>(size, kReadAhead));
    const ssize_t got = ::pread(fd_.get(), block_.data(), block_.size(), static_cast<off_t>(at));
    block_.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    block_at_ = at;
    if (block_.size() < size) return {};
  }
  return block_.substr(at - block_at_, size);
}

std::string args_text(const Trace& trace, const Slice& slice) {
  if (slice.detail == kNoIndex) return {};
  const Detail& detail = trace.details[slice.detail];
  if (detail.args_size > 0) {
    const auto store = detail.args_at >> ArgsStore::kStoreShift;
    const std::uint64_t at = detail.args_at & ((std::uint64_t{1} << ArgsStore::kStoreShift) - 1);
    return store < trace.args.size() ? trace.args[store]->read(at, detail.args_size)
                                     : std::string();
  }
  if (detail.correlation == 0) return {};
  return detail.bytes == kNone ? fmt::format("{{\"correlation\": {}}}", detail.correlation)
                               : fmt::format("{{\"correlation\": {}, \"bytes\": {}}}",
                                             detail.correlation, detail.bytes);
}

}  // namespace assay::timeline
