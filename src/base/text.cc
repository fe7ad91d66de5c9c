#include "base/text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/utf8.h"

namespace assay {
namespace {

// The code point of a well-formed character.
char32_t code_point_of(std::string_view character) {
  constexpr std::array<unsigned, 5> kFirstBits{0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t value = static_cast<unsigned char>(character[0]) & kFirstBits.at(character.size());
  for (const char c : character.substr(1)) {
    value = (value << 6U) | (static_cast<unsigned char>(c) & 0x3FU);
  }
  return value;
}

bool controls_terminals(char32_t c) {
  constexpr std::array<std::pair<char32_t, char32_t>, 6> kRanges{{
      {0x00, 0x1F},      // C0
      {0x7F, 0x9F},      // DEL and C1
      {0x061C, 0x061C},  // Arabic letter mark
      {0x200E, 0x200F},  // marks of direction
      {0x2028, 0x202E},  // line and paragraph separators, embeddings, overrides
      {0x2066, 0x2069},  // isolates
  }};
  return std::ranges::any_of(
      kRanges, [c](const auto& range) { return c >= range.first && c <= range.second; });
}

// The length of a colour (ESC [ digits and semicolons m) at the front; 0 for none.
std::size_t colour_size(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

void append_number(std::string& out, std::string_view prefix, char32_t value, unsigned digits) {
  out += prefix;
  while (digits-- > 0) out += "0123456789abcdef"[(value >> (4 * digits)) & 0xFU];
}

// Appends the character at the front of `text`, which is not empty, so that it is safe. Returns
// its length.
std::size_t append_printable(std::string& out, std::string_view text, std::string_view kept) {
  const std::string_view character = text.substr(0, std::min(character_size(text[0]), text.size()));
  if (text[0] != '\0' && find_bad_byte(character) != character.size()) {
    append_number(out, "\\x", static_cast<unsigned char>(text[0]), 2);
    return 1;
  }
  const char32_t c = code_point_of(character);
  if (!controls_terminals(c) || (c != 0 && kept.find(text[0]) != std::string_view::npos)) {
    out += character;
  } else if (const std::size_t colour = colour_size(text); colour > 0) {
    return colour;
  } else if (c == '\n') {
    out += "\\n";
  } else {
    append_number(out, "\\u", c, 4);
  }
  return character.size();
}

std::string made_printable(std::string_view text, std::string_view kept) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const auto* plain =
        std::ranges::find_if(text, [](unsigned char c) { return c < 0x20 || c > 0x7E; });
    const auto size = static_cast<std::size_t>(plain - text.begin());
    safe += text.substr(0, size);
    text.remove_prefix(size);
    if (!text.empty()) text.remove_prefix(append_printable(safe, text, kept));
  }
  return safe;
}

}  // namespace

std::string printable(std::string_view text) { return made_printable(text, "\n\t"); }

std::string one_line(std::string_view text) { return made_printable(text, "\t"); }

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::vector<std::string> split_at(std::string_view text, char separator) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string count_of(std::uint64_t number, std::string_view noun) {
  return std::to_string(number).append(" ").append(noun).append(number == 1 ? "" : "s");
}

bool nests_deeper(std::string_view json, std::size_t limit) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '[' || c == '{')) {
      if (++depth > limit) return true;
    } else if (!quoted && (c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

std::size_t digits_at_front(std::string_view text) {
  return std::min(text.find_first_not_of("0123456789"), text.size());
}

std::string lowered(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+./:=@%,";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(text);
  }
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += shell_word(word);
  }
  return line;
}

}  // namespace assay
