#pragma once

// The text format in which stores keep sums: lines of UTF-8 without NUL, with fields separated by
// tabs.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

inline constexpr char kBetweenFields = '\t';

// The text as a field: control characters become spaces, bytes that are no UTF-8 become "?".
std::string as_field(std::string_view text);

// Reads the fields of a line from left to right.
class LineFields {
 public:
  explicit LineFields(std::string_view line) : left_(line) {}

  // The next field; empty after the last one.
  std::string_view next();
  // The next field as a number; 0 if it is none.
  std::int64_t number();
  // Whether exactly all fields were read, and each number() was a number.
  bool good() const { return good_ && ended_; }

 private:
  std::string_view left_;
  bool ended_ = false;
  bool good_ = true;
};

// Calls `take` with each line of the text until it returns an error.
template <typename Take>
Status each_line(std::string_view text, Take&& take) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (Status taken = take(text.substr(0, end)); !taken) return taken;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return {};
}

}  // namespace assay
