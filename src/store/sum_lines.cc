#include "store/sum_lines.h"

#include <algorithm>

#include "base/utf8.h"
#include "base/values.h"

namespace assay {

std::string as_field(std::string_view text) {
  std::string field = replace_bad_bytes(text);
  std::replace_if(
      field.begin(), field.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return field;
}

std::string_view LineFields::next() {
  if (ended_) good_ = false;
  const std::size_t end = left_.find(kBetweenFields);
  const std::string_view field = left_.substr(0, end);
  ended_ = end == std::string_view::npos;
  left_.remove_prefix(ended_ ? left_.size() : end + 1);
  return field;
}

std::int64_t LineFields::number() {
  std::int64_t value = 0;
  if (!read_number(next(), value)) good_ = false;
  return value;
}

}  // namespace assay
