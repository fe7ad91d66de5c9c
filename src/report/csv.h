#pragma once

#include <string>
#include <string_view>

namespace assay {

// A field of a line of CSV: in quotes where it has to be (RFC 4180).
inline std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string made = "\"";
  for (const char c : text) {
    if (c == '"') made += '"';
    made += c;
  }
  return made + '"';
}

}  // namespace assay
