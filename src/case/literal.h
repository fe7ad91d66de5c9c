#pragma once

// Numbers and strings of the case language. The scanners read from a NUL-terminated text and never
// beyond that NUL; each gives the place behind the literal, or nullptr with `error` set.

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
constexpr bool is_of(char c, unsigned classes) {
  return (kCharacterClasses[static_cast<unsigned char>(c)] & classes) != 0;
}
}  // namespace detail

constexpr bool is_digit(char c) { return detail::is_of(c, detail::kDigit); }
constexpr bool is_name_start(char c) { return detail::is_of(c, detail::kNameStart); }

// The longest run of letters, digits, '_' and '.' there: "math.inf", "axis", "".
inline std::string_view scan_word(const char* at) {
  const char* end = at;
  while (detail::is_of(*end, detail::kDigit | detail::kNameStart | detail::kDot)) ++end;
  return {at, static_cast<std::size_t>(end - at)};
}

struct Number {
  ValueKind kind = ValueKind::integer;  // integer, big_integer, floating or complex
  std::int64_t integer = 0;
  std::string_view digits;  // of an integer of either kind: without '+', with '-'
  double real = 0;          // floating, complex
  double imaginary = 0;     // complex
};

// Integers of any size; floats with digits on either side of the dot or a bare "." (zero: corpora
// hold zeros that have lost their digits); inf and nan, also as math.inf, numpy.inf, np.inf;
// complex numbers as Python prints them: 2j, 1.5-2e3j. Out of a double's range is an error.
const char* scan_number(const char* at, Number& out, SyntaxError& error);

// Whether a word is one of the names of infinity or NaN, an imaginary one included ("nanj").
bool names_number(std::string_view word);

// The number as a double, for the parts of complex(…). False for a complex number and for an
// integer out of range.
bool to_double(const Number& number, double& out);

// A string in single or double quotes. Escapes are \\ \" \' \n \r \t \xHH \uHHHH \UHHHHHHHH, the
// last three naming a code point. `plain` is the text between the quotes when it holds no escape;
// otherwise the decoded text is appended to `decoded` and plain.data() is nullptr.
const char* scan_string(const char* at, std::string_view& plain, std::string& decoded,
                        SyntaxError& error);

}  // namespace assay
