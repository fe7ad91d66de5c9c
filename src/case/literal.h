#pragma once

// Scanners for numbers and strings of the case language. They read a NUL-terminated text and stop
// at the NUL. Each returns the position behind the literal, or nullptr after setting `error`.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "case/case.h"

namespace assay {

struct SyntaxError {
  const char* at = nullptr;
  std::string message;
};

namespace detail {
enum : std::uint8_t { kDigit = 1, kNameStart = 2, kDot = 4 };
constexpr std::array<std::uint8_t, 256> make_character_classes() {
  std::array<std::uint8_t, 256> classes{};
  for (unsigned char c = '0'; c <= '9'; ++c) classes[c] = kDigit;
  for (unsigned char c = 'a'; c <= 'z'; ++c) classes[c] = kNameStart;
  for (unsigned char c = 'A'; c <= 'Z'; ++c) classes[c] = kNameStart;
  classes['_'] = kNameStart;
  classes['.'] = kDot;
  return classes;
}
inline constexpr auto kCharacterClasses = make_character_classes();
// True if the character is in one of the classes. Independent of the locale.
constexpr bool is_of(char c, unsigned classes) {
  return (kCharacterClasses[static_cast<unsigned char>(c)] & classes) != 0;
}
}  // namespace detail

constexpr bool is_digit(char c) { return detail::is_of(c, detail::kDigit); }
constexpr bool is_name_start(char c) { return detail::is_of(c, detail::kNameStart); }

// Returns the longest run of letters, digits, '_' and '.': "math.inf", "axis", "".
inline std::string_view scan_word(const char* at) {
  const char* end = at;
  while (detail::is_of(*end, detail::kDigit | detail::kNameStart | detail::kDot)) ++end;
  return {at, static_cast<std::size_t>(end - at)};
}

struct Number {
  ValueKind kind = ValueKind::integer;  // integer, big_integer, floating or complex
  std::int64_t integer = 0;
  std::string_view digits;  // of an integer or big_integer: with '-', without '+'
  double real = 0;          // of a floating or complex number
  double imaginary = 0;     // of a complex number
};

// Scans a number: integers of any size; floats, also a bare "." (0, because corpora have zeros that
// lost their digits); inf and nan, also as math.inf, numpy.inf, np.inf; complex numbers as Python
// prints them: 2j, 1.5-2e3j. A value outside of the range of double is an error.
const char* scan_number(const char* at, Number& out, SyntaxError& error);

// True for names of infinity or NaN, also imaginary ones ("nanj").
bool names_number(std::string_view word);

// Converts a part of complex(…) to double. False for a complex number and an integer out of range.
bool to_double(const Number& number, double& out);

// Scans a string in single or double quotes. Escapes are \\ \" \' \n \r \t and, for code points,
// \xHH \uHHHH \UHHHHHHHH. Without escapes `plain` is the text between the quotes; otherwise the
// decoded text is appended to `decoded`, and plain.data() is nullptr.
const char* scan_string(const char* at, std::string_view& plain, std::string& decoded,
                        SyntaxError& error);

}  // namespace assay
