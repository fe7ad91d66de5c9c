#include "base/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace assay {
namespace {

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80; }

// The length of the well-formed character at the front of `text`, which is not empty; 0 if there is
// none. The ranges are from table 3-7 of the Unicode standard.
std::size_t well_formed_size(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return first == 0 ? 0 : 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const std::size_t size = character_size(text[0]);
  if (text.size() < size) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  if (first == 0xE0 && second < 0xA0) return 0;  // overlong
  if (first == 0xED && second > 0x9F) return 0;  // surrogate
  if (first == 0xF0 && second < 0x90) return 0;  // overlong
  if (first == 0xF4 && second > 0x8F) return 0;  // above U+10FFFF
  const std::string_view rest = text.substr(1, size - 1);
  return std::ranges::all_of(rest, is_continuation) ? size : 0;
}

// Whether all eight bytes are ASCII and none is NUL.
bool is_plain(const char* eight) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  std::uint64_t word = 0;
  std::memcpy(&word, eight, sizeof word);
  return ((word | (word - kOnes)) & (kOnes << 7U)) == 0;
}

}  // namespace

std::size_t find_bad_byte(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (text.size() - at >= 8 && is_plain(text.data() + at)) {
      at += 8;
      continue;
    }
    const std::size_t size = well_formed_size(text.substr(at));
    if (size == 0) return at;
    at += size;
  }
  return at;
}

std::string replace_bad_bytes(std::string_view text) {
  std::string valid;
  while (true) {
    const std::size_t good = find_bad_byte(text);
    valid += text.substr(0, good);
    if (good == text.size()) return valid;
    valid += '?';
    text.remove_prefix(good + 1);
  }
}

std::size_t count_characters(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, is_continuation));
}

std::size_t character_size(char first) {
  const auto byte = static_cast<unsigned char>(first);
  if (byte < 0x80) return 1;
  if (byte < 0xE0) return 2;
  return byte < 0xF0 ? 3 : 4;
}

bool append_utf8(std::string& out, char32_t code_point) {
  if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point <= 0xDFFF)) return false;
  const auto push = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  const auto continuation = [&](unsigned shift) { push(0x80 | ((code_point >> shift) & 0x3F)); };
  if (code_point < 0x80) {
    push(code_point);
  } else if (code_point < 0x800) {
    push(0xC0 | (code_point >> 6));
    continuation(0);
  } else if (code_point < 0x10000) {
    push(0xE0 | (code_point >> 12));
    continuation(6);
    continuation(0);
  } else {
    push(0xF0 | (code_point >> 18));
    continuation(12);
    continuation(6);
    continuation(0);
  }
  return true;
}

}  // namespace assay
