#include "base/markup.h"

#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"

namespace assay {
namespace {

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '&':
      out += "&amp;";
      break;
    case '"':
      out += "&quot;";
      break;
    case '\n':
      out += "&#10;";
      break;
    default:
      out += static_cast<unsigned char>(c) < 0x20 && c != '\t' ? '?' : c;
  }
}

// U+FFFE and U+FFFF.
bool is_noncharacter(std::string_view character) {
  return character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF";
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const std::size_t good = find_bad_byte(text);
    for (std::size_t i = 0; i < good; ++i) {
      if (is_noncharacter(text.substr(i, 3))) {
        safe += '?';
        i += 2;
      } else {
        append_escaped(safe, text[i]);
      }
    }
    if (good < text.size()) safe += '?';
    text.remove_prefix(std::min(good + 1, text.size()));
  }
  return safe;
}

std::string escape_markdown(std::string_view text) {
  std::string safe;
  for (const char c : one_line(text)) {
    if (std::string_view("\\`*_{}[]<>#|~&@").find(c) != std::string_view::npos) safe += '\\';
    safe += c;
  }
  return safe;
}

std::string csv_field(std::string_view text) {
  std::string field = one_line(text);
  if (!field.empty() && std::string_view("=+-@\t").find(field[0]) != std::string_view::npos) {
    field.insert(0, 1, '\'');
  }
  if (field.find_first_of(",\"") == std::string::npos) return field;
  std::string made = "\"";
  for (const char c : field) {
    if (c == '"') made += '"';
    made += c;
  }
  return made + '"';
}

}  // namespace assay
