#include "timeline/input/json_window.h"

#include <algorithm>
#include <cstring>

#include "timeline/names.h"

namespace assay::timeline {
namespace {

// Small files need no more than the first window.
constexpr std::size_t kFirstWindow = 1U << 16U;
constexpr std::size_t kNextWindow = 1U << 20U;

}  // namespace

JsonWindow::JsonWindow(std::unique_ptr<ByteSource> source)
    : source_(std::move(source)), buffer_(kFirstWindow + kJsonPadding) {
  at_ = end_ = buffer_.data();
}

bool JsonWindow::grow() {
  if (ended_) return false;
  const auto left = static_cast<std::size_t>(end_ - at_);
  if (left > kMaxValue) return false;
  dropped_ += static_cast<std::uint64_t>(at_ - data());
  std::memmove(buffer_.data(), at_, left);
  // Keep at least half of the window for new bytes.
  if (buffer_.size() - kJsonPadding < 2 * left) buffer_.resize(2 * buffer_.size());
  if (filled_ && buffer_.size() < kNextWindow) buffer_.resize(kNextWindow + kJsonPadding);
  const std::size_t room = buffer_.size() - kJsonPadding - left;
  const auto got = source_->read({buffer_.data() + left, room});
  std::size_t bytes = 0;
  if (!got) {
    damage_ = got.error().message;
  } else {
    bytes = *got;
  }
  ended_ = bytes == 0;
  filled_ = bytes == room;
  at_ = buffer_.data();
  end_ = at_ + left + bytes;
  std::memset(buffer_.data() + left + bytes, 0, kJsonPadding);
  return !ended_;
}

char JsonWindow::ahead(std::size_t offset) {
  while (offset >= static_cast<std::size_t>(end_ - at_)) {
    if (!grow()) return 0;
  }
  return at_[offset];
}

bool JsonWindow::at_end() {
  while (ahead(0) != 0 && is_blank(*at_)) ++at_;
  return at_ == end_ && ended_;
}

JsonStop JsonWindow::parse(const std::function<void(JsonCursor&)>& parse) {
  for (;;) {
    JsonCursor json = cursor();
    parse(json);
    if (json.good()) {
      at_ = json.at();
      return JsonStop::none;
    }
    if (json.stop() == JsonStop::bad || !grow()) {
      // A value longer than the window counts as damaged.
      return json.stop() == JsonStop::bad || !ended_ ? JsonStop::bad : JsonStop::end;
    }
  }
}

// Whether `, {"` follows. A string cannot contain it, because the quote would end the string.
bool JsonWindow::next_event_begins(std::size_t offset) {
  constexpr std::size_t kMaxBlanks = 256;
  std::size_t i = offset + 1;
  const std::size_t limit = i + kMaxBlanks;
  while (i < limit && is_blank(ahead(i))) ++i;
  return ahead(i) == '"';
}

bool JsonWindow::skip_roughly(std::string* text, std::size_t limit) {
  std::int64_t depth = 0;
  bool in_string = false;
  char before = 0;  // the last non-blank bytes
  char before_that = 0;
  const auto step = [&](char c) {
    if (text != nullptr && text->size() < limit) *text += c;
    ++at_;
    if (!is_blank(c)) {
      before_that = before;
      before = c;
    }
  };
  while (ahead(0) != 0 || at_ < end_) {
    const char c = *at_;
    if (in_string) {
      // If the next event begins within a string, a quote is missing.
      if (c == '{' && before == ',' && before_that == '}' && next_event_begins(0)) return true;
      if (c == '\\') {
        step(c);
        if (ahead(0) == 0 && at_ >= end_) return false;
        step(*at_);
        continue;
      }
      if (c == '"') in_string = false;
      step(c);
      if (!in_string && depth == 0) return true;
      continue;
    }
    if (depth == 0 && (c == ',' || c == ']' || c == '}')) return true;
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    step(c);
    if (depth == 0 && (c == '}' || c == ']')) return true;
  }
  return false;
}

}  // namespace assay::timeline
