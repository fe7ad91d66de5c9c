#pragma once

// A NUL-terminated window that moves over a long JSON file, for JsonCursor.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "timeline/input/byte_source.h"
#include "timeline/input/json_cursor.h"

namespace assay::timeline {

class JsonWindow {
 public:
  // Longer values are skipped.
  static constexpr std::size_t kMaxValue = 16U << 20U;

  explicit JsonWindow(std::unique_ptr<ByteSource> source);

  JsonCursor cursor() const { return {at_, end_}; }
  const char* at() const { return at_; }
  void move_to(const char* at) { at_ = at; }

  // Reads more bytes; false at the end of the file, or with kMaxValue bytes in the window.
  bool grow();
  // The byte at `offset` from at(), reading more if needed; 0 past the end.
  char ahead(std::size_t offset);
  bool at_end();

  // Runs `parse` at at(), with more bytes each time, until it no longer stops at the end of the
  // bytes. Moves past the parsed value on success.
  JsonStop parse(const std::function<void(JsonCursor&)>& parse);

  // Skips one damaged or unwanted value: to after its closing bracket, or to a certain start of the
  // array's next element. Stores up to `limit` bytes of it in `text`. False at the end of the file.
  bool skip_roughly(std::string* text = nullptr, std::size_t limit = 0);

  std::uint64_t position() const { return dropped_ + static_cast<std::uint64_t>(at_ - data()); }
  bool ended() const { return ended_; }
  // Why the bytes ended early, or empty.
  const std::string& damage() const { return damage_; }

 private:
  const char* data() const { return buffer_.data(); }
  bool next_event_begins(std::size_t offset);

  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  const char* at_;
  const char* end_;
  std::uint64_t dropped_ = 0;  // bytes before the buffer
  bool filled_ = false;        // the last read filled the window
  bool ended_ = false;
  std::string damage_;
};

}  // namespace assay::timeline
