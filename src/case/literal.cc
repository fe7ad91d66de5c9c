#include "case/literal.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "base/utf8.h"

namespace assay {
namespace {

constexpr std::ptrdiff_t kMostDigits = 4300;  // sys.int_info.default_max_str_digits

const char* fail(SyntaxError& error, const char* at, std::string message) {
  error = {at, std::move(message)};
  return nullptr;
}

const char* skip_digits(const char* at) {
  while (is_digit(*at)) ++at;
  return at;
}

// One real number: the digits of an integer, or the value of a float.
struct Real {
  std::string_view digits;
  bool integral = false;
  double value = 0;
};

bool parse_double(std::string_view text, double& out) {
  return std::from_chars(text.data(), text.data() + text.size(), out).ec == std::errc();
}

std::optional<double> named_value(std::string_view word) {
  for (const std::string_view module : {"math.", "numpy.", "np."}) {
    if (word.starts_with(module)) {
      word.remove_prefix(module.size());
      break;
    }
  }
  if (word == "inf") return std::numeric_limits<double>::infinity();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

// NaN loses its sign, so that it has one canonical text.
const char* scan_named(const char* at, bool negative, Real& out, SyntaxError& error) {
  std::string_view word = scan_word(at);
  if (word.ends_with('j') && named_value(word.substr(0, word.size() - 1))) word.remove_suffix(1);
  const std::optional<double> value = named_value(word);
  if (!value) return fail(error, at, "expected a number after the sign");
  out.value = negative && !std::isnan(*value) ? -*value : *value;
  return at + word.size();
}

// Skips an exponent, if there is one.
const char* scan_exponent(const char* at, SyntaxError& error) {
  if (*at != 'e' && *at != 'E') return at;
  ++at;
  if (*at == '+' || *at == '-') ++at;
  if (!is_digit(*at)) return fail(error, at, "expected the digits of an exponent");
  return skip_digits(at);
}

const char* scan_real(const char* at, Real& out, SyntaxError& error) {
  const char* const begin = at;
  const bool negative = *at == '-';
  if (negative || *at == '+') ++at;
  if (is_name_start(*at)) return scan_named(at, negative, out, error);

  const char* const first = at;
  at = skip_digits(at);
  const char* const behind_integer = at;
  if (*at == '.') at = skip_digits(at + 1);
  const bool no_digits = first == behind_integer && at - behind_integer <= 1;
  if (no_digits && begin != first) return fail(error, first, "expected a number after the sign");
  if (no_digits) {
    out.value = 0.0;
    return at;
  }
  const char* const end = scan_exponent(at, error);
  if (end == nullptr) return nullptr;

  const char* const unsigned_plus = *begin == '+' ? first : begin;
  out.digits = {unsigned_plus, static_cast<std::size_t>(end - unsigned_plus)};
  out.integral = end == behind_integer;
  if (out.integral) {
    if (*first == '0' && end - first > 1) {
      return fail(error, first, "a whole number cannot begin with 0");
    }
    if (end - first > kMostDigits) {
      return fail(error, first, "a whole number has more digits than Python reads (4300)");
    }
  } else if (!parse_double(out.digits, out.value)) {
    return fail(error, begin, "the number is out of a float's range");
  }
  return end;
}

bool real_to_double(const Real& real, double& out) {
  if (real.integral) return parse_double(real.digits, out);
  out = real.value;
  return true;
}

void set_real(const Real& real, Number& out) {
  out.real = real.value;
  out.digits = real.digits;
  out.kind = ValueKind::floating;
  if (!real.integral) return;
  const auto [end, code] =
      std::from_chars(real.digits.data(), real.digits.data() + real.digits.size(), out.integer);
  out.kind = code == std::errc() ? ValueKind::integer : ValueKind::big_integer;
}

std::optional<unsigned> hex_digit(char c) {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  const char lower = static_cast<char>(c | 0x20);
  if (lower >= 'a' && lower <= 'f') return static_cast<unsigned>(lower - 'a' + 10);
  return std::nullopt;
}

// Decodes an escape; `at` is behind the backslash.
const char* decode_escape(const char* at, std::string& decoded, SyntaxError& error) {
  const char kind = *at++;
  unsigned digits = 0;
  switch (kind) {
    case '\\':
    case '"':
    case '\'':
      decoded.push_back(kind);
      return at;
    case 'n':
      decoded.push_back('\n');
      return at;
    case 'r':
      decoded.push_back('\r');
      return at;
    case 't':
      decoded.push_back('\t');
      return at;
    case 'x':
      digits = 2;
      break;
    case 'u':
      digits = 4;
      break;
    case 'U':
      digits = 8;
      break;
    default:
      return fail(error, at - 2, "unknown escape in a string; a backslash itself is written \\\\");
  }
  char32_t code_point = 0;
  for (unsigned i = 0; i < digits; ++i, ++at) {
    const std::optional<unsigned> digit = hex_digit(*at);
    if (!digit) return fail(error, at, "expected a hexadecimal digit");
    code_point = code_point * 16 + *digit;
  }
  if (!append_utf8(decoded, code_point)) {
    return fail(error, at - digits - 2, "the escape names no character");
  }
  return at;
}

}  // namespace

bool names_number(std::string_view word) {
  if (named_value(word)) return true;
  return word.ends_with('j') && named_value(word.substr(0, word.size() - 1)).has_value();
}

const char* scan_number(const char* at, Number& out, SyntaxError& error) {
  const char* const begin = at;
  Real first;
  at = scan_real(at, first, error);
  if (at == nullptr) return nullptr;

  Real second;
  const bool sum = *at == '+' || *at == '-';
  const char* const behind_first = at;
  if (sum) at = scan_real(at, second, error);
  if (at == nullptr) return nullptr;
  if (*at == 'j') {
    ++at;
    out.kind = ValueKind::complex;
    const Real& imaginary = sum ? second : first;
    out.real = 0.0;
    if ((sum && !real_to_double(first, out.real)) || !real_to_double(imaginary, out.imaginary)) {
      return fail(error, begin, "the number is out of a float's range");
    }
  } else if (sum) {
    return fail(error, behind_first, "expected ',' (sums are not evaluated)");
  } else {
    set_real(first, out);
  }
  if (!scan_word(at).empty()) return fail(error, at, "unexpected text after a number");
  return at;
}

bool to_double(const Number& number, double& out) {
  switch (number.kind) {
    case ValueKind::floating:
      out = number.real;
      return true;
    case ValueKind::complex:
      return false;
    default:
      return parse_double(number.digits, out);
  }
}

const char* scan_string(const char* at, std::string_view& plain, std::string& decoded,
                        SyntaxError& error) {
  const char* const begin = at;
  const char quote = *at++;
  const char* from = at;  // start of the text that `decoded` does not have yet
  bool escaped = false;
  while (*at != quote) {
    if (*at == '\0') return fail(error, begin, "this string is never closed");
    if (*at != '\\') {
      ++at;
      continue;
    }
    escaped = true;
    decoded.append(from, at);
    at = decode_escape(at + 1, decoded, error);
    if (at == nullptr) return nullptr;
    from = at;
  }
  plain =
      escaped ? std::string_view() : std::string_view(from, static_cast<std::size_t>(at - from));
  if (escaped) decoded.append(from, at);
  return at + 1;
}

}  // namespace assay
