#include "base/markup.h"

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
  for (const char c : replace_bad_bytes(text)) append_escaped(safe, c);
  return safe;
}

}  // namespace assay
