#pragma once

// Finds words and numbers in names.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace assay::timeline {

// Character classes of ASCII, independent of the locale.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
inline bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return has(text, part); });
}

// Orders "rank2" before "rank10".
bool stands_before(std::string_view a, std::string_view b);

// The number that the text starts with.
template <typename Number = std::int64_t>
Number leading_number(std::string_view text, Number otherwise = -1) {
  std::from_chars(text.data(), text.data() + text.size(), otherwise);
  return otherwise;
}
// The number behind a word; `otherwise` also without the word.
template <typename Number = std::int64_t>
Number number_behind(std::string_view text, std::string_view word, Number otherwise = -1) {
  const std::size_t at = text.find(word);
  return at == std::string_view::npos ? otherwise
                                      : leading_number(text.substr(at + word.size()), otherwise);
}

// All numbers: 2 and 3 of "[2, 3]".
template <typename Number>
std::vector<Number> numbers_in(std::string_view text) {
  std::vector<Number> numbers;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    Number number = 0;
    const auto [behind, error] = std::from_chars(at, end, number);
    if (error == std::errc()) numbers.push_back(number);
    at = error == std::errc() ? behind : at + 1;
  }
  return numbers;
}

}  // namespace assay::timeline
