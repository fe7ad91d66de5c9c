#include "base/markup.h"

#include <algorithm>

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

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const std::size_t good = find_bad_byte(text);
    for (const char c : text.substr(0, good)) append_escaped(safe, c);
    if (good < text.size()) safe += '?';
    text.remove_prefix(std::min(good + 1, text.size()));
  }
  return safe;
}

}  // namespace assay
