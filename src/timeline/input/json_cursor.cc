#include "timeline/input/json_cursor.h"

#include <charconv>
#include <system_error>

#include "base/utf8.h"
#include "timeline/names.h"

#ifdef __SSE2__
#include <emmintrin.h>

#include <bit>
#endif

namespace assay::timeline {
namespace {

// The next quote, backslash or control character of the string. Sets a sign bit of `wide` after
// passing a byte above 127.
const char* find_special(const char* at, unsigned& wide) {
#ifdef __SSE2__
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i last_control = _mm_set1_epi8(0x1f);
  for (;; at += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i special =
        _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)),
                     _mm_cmpeq_epi8(_mm_min_epu8(bytes, last_control), bytes));
    const auto found = static_cast<unsigned>(_mm_movemask_epi8(special));
    const auto high = static_cast<unsigned>(_mm_movemask_epi8(bytes));
    if (found != 0) {
      const int place = std::countr_zero(found);
      wide |= high & ((1U << static_cast<unsigned>(place)) - 1U);
      return at + place;
    }
    wide |= high;
  }
#else
  for (;; ++at) {
    const auto byte = static_cast<unsigned char>(*at);
    if (byte == '"' || byte == '\\' || byte < 0x20) return at;
    wide |= byte & 0x80U;
  }
#endif
}

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The value of the four digits after "\u"; -1 for invalid digits.
int hex4(std::string_view text) {
  if (text.size() < 4) return -1;
  int value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const int digit = hex_value(text[i]);
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

}  // namespace

void JsonCursor::fail_here() {
  if (stop_ == JsonStop::none) stop_ = at_ >= end_ ? JsonStop::end : JsonStop::bad;
}

char JsonCursor::peek() {
  if (stop_ != JsonStop::none) return 0;
  while (is_blank(*at_)) ++at_;
  if (*at_ == 0) fail_here();
  return *at_;
}

bool JsonCursor::take(char c) {
  if (peek() != c) {
    fail_here();
    return false;
  }
  ++at_;
  return true;
}

bool JsonCursor::next_element(char close) {
  const char c = peek();
  if (c == ',') {
    ++at_;
    return true;
  }
  if (c == close) {
    ++at_;
    return false;
  }
  fail_here();
  return false;
}

JsonCursor::String JsonCursor::string() {
  if (!take('"')) return {};
  const char* const begin = at_;
  unsigned wide = 0;
  bool escaped = false;
  for (;;) {
    at_ = find_special(at_, wide);
    if (*at_ == '"') break;
    if (*at_ != '\\') {
      fail_here();
      return {};
    }
    if (at_[1] == 0) {
      ++at_;
      fail_here();
      return {};
    }
    escaped = true;
    at_ += 2;
  }
  const std::string_view raw(begin, static_cast<std::size_t>(at_ - begin));
  const bool damaged = wide != 0 && find_bad_byte(raw) != raw.size();
  damaged_ |= damaged;
  ++at_;
  return {raw, escaped, damaged};
}

std::string_view JsonCursor::number() {
  const char* const begin = at_;
  if (*at_ == '-') ++at_;
  const char* const digits = at_;
  while (is_digit(*at_)) ++at_;
  bool complete = at_ > digits && (*digits != '0' || at_ == digits + 1);
  if (complete && *at_ == '.') {
    const char* const fraction = ++at_;
    while (is_digit(*at_)) ++at_;
    complete = at_ > fraction;
  }
  if (complete && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    if (*at_ == '+' || *at_ == '-') ++at_;
    const char* const exponent = at_;
    while (is_digit(*at_)) ++at_;
    complete = at_ > exponent;
  }
  // A number at the end of the window may continue after it.
  if (!complete || at_ >= end_) {
    fail_here();
    return {};
  }
  return {begin, static_cast<std::size_t>(at_ - begin)};
}

// Passes "NaN", "Infinity" and "-Infinity", which Python's json module writes, and "nan" and "inf".
bool JsonCursor::no_number() {
  const char* const begin = at_;
  if (*at_ == '-') ++at_;
  for (const std::string_view word : {"NaN", "nan", "Infinity", "inf"}) {
    if (*at_ != word[0]) continue;
    const char* const from = at_;
    literal(word);
    odd_ = true;
    if (good()) return true;
    if (stop_ == JsonStop::end) return true;  // the window ends within the word
    stop_ = JsonStop::none;
    at_ = from;
  }
  at_ = begin;
  return false;
}

void JsonCursor::literal(std::string_view word) {
  for (const char c : word) {
    if (*at_ != c) {
      fail_here();
      return;
    }
    ++at_;
  }
}

JsonCursor::String JsonCursor::scalar() {
  const char c = peek();
  if (c == '"') return string();
  if (is_digit(c)) return {number()};
  if (c == '-' || c == 'N' || c == 'n' || c == 'I' || c == 'i') {
    if (no_number()) return {};
    if (c == '-') return {number()};
  }
  const char* const begin = at_;
  skip();
  if (!good() || c == '{' || c == '[' || c == 'n') return {};
  return {std::string_view(begin, static_cast<std::size_t>(at_ - begin))};
}

void JsonCursor::skip(int depth) {
  const char c = peek();
  if (depth > kMaxDepth) stop_ = JsonStop::bad;
  if (!good()) return;
  if (c == '"') {
    string();
  } else if (c == '{') {
    ++at_;
    if (peek() == '}') {
      ++at_;
      return;
    }
    do {
      string();
      if (!take(':')) return;
      skip(depth + 1);
    } while (good() && next_element('}'));
  } else if (c == '[') {
    ++at_;
    if (peek() == ']') {
      ++at_;
      return;
    }
    do {
      skip(depth + 1);
    } while (good() && next_element(']'));
  } else if (is_digit(c)) {
    number();
  } else if ((c == '-' || c == 'N' || c == 'n' || c == 'I' || c == 'i') && no_number()) {
    return;
  } else if (c == '-') {
    number();
  } else if (c == 't') {
    literal("true");
  } else if (c == 'f') {
    literal("false");
  } else if (c == 'n') {
    literal("null");
  } else {
    fail_here();
  }
}

bool json_decode(std::string_view raw, std::string& out) {
  out.clear();
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      out += raw[i];
      continue;
    }
    if (++i == raw.size()) return false;
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const std::size_t known = kEscapes.find(raw[i]);
    if (known != std::string_view::npos) {
      out += kMeanings[known];
      continue;
    }
    if (raw[i] != 'u') return false;
    int code = hex4(raw.substr(i + 1));
    if (code < 0) return false;
    i += 4;
    constexpr int kHighSurrogate = 0xd800;
    constexpr int kLowSurrogate = 0xdc00;
    if (code >= kHighSurrogate && code < kLowSurrogate && raw.substr(i + 1, 2) == "\\u") {
      const int low = hex4(raw.substr(i + 3));
      if (low >= kLowSurrogate && low <= 0xdfff) {
        code = 0x10000 + ((code - kHighSurrogate) << 10) + (low - kLowSurrogate);
        i += 6;
      }
    }
    // A lone surrogate becomes U+FFFD.
    if (!append_utf8(out, static_cast<char32_t>(code))) append_utf8(out, U'\ufffd');
  }
  return true;
}

}  // namespace assay::timeline
