#pragma once

// Sums as stores keep them: lines of UTF-8 without NUL, whose fields are separated by tabs.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

inline constexpr char kBetweenFields = '\t';

// Without what separates fields and lines, and without what a database takes for no text.
std::string as_field(std::string_view text);

// The fields of a line, one after the other.
class LineFields {
 public:
  explicit LineFields(std::string_view line) : left_(line) {}

  std::string_view next();
  std::int64_t number();
  // There were as many as were asked for, and numbers where one was.
  bool good() const { return good_ && ended_; }

 private:
  std::string_view left_;
  bool ended_ = false;
  bool good_ = true;
};

// Calls `take` with each line of the text until it gives an error.
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
