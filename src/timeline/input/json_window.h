#pragma once

// A window that moves over a long JSON file: what is in it ends with a NUL, as JsonCursor wants.

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
  // One value must fit in: what is longer is passed over.
  static constexpr std::size_t kMaxValue = 16U << 20U;

  explicit JsonWindow(std::unique_ptr<ByteSource> source);

  JsonCursor cursor() const { return {at_, end_}; }
  const char* at() const { return at_; }
  void move_to(const char* at) { at_ = at; }

  // Brings in more bytes behind those from at() on; false at the end of the file, or when what
  // there is has reached kMaxValue.
  bool grow();
  // The byte at `offset` from at(), bringing in what is needed; 0 behind the end (and for a NUL).
  char ahead(std::size_t offset);
  bool at_end();  // nothing is left

  // Runs `parse` from at() on, with more and more bytes, until it stops for another reason than
  // their end; moves behind what it took when it was content.
  JsonStop parse(const std::function<void(JsonCursor&)>& parse);

  // Passes over one damaged or unwanted value: to behind the bracket that closes it, or to where
  // the next element of the same array surely begins. Keeps its text where `text` is given (up to
  // `limit` bytes). False when the file ended before.
  bool skip_roughly(std::string* text = nullptr, std::size_t limit = 0);

  std::uint64_t position() const { return dropped_ + static_cast<std::uint64_t>(at_ - data()); }
  bool ended() const { return ended_; }
  // Why the bytes ended early; empty: they did not.
  const std::string& damage() const { return damage_; }

 private:
  const char* data() const { return buffer_.data(); }
  bool next_event_begins(std::size_t offset);

  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  const char* at_;
  const char* end_;
  std::uint64_t dropped_ = 0;  // bytes before the buffer
  bool ended_ = false;
  std::string damage_;
};

}  // namespace assay::timeline
