#pragma once

// A JSON reader over NUL-terminated bytes that neither copies nor allocates. It stops at invalid
// JSON (a raw newline in a string, a missing quote) and at the end of the bytes. It passes numbers
// that JSON does not have (NaN, Infinity, 1e400) and text that is not UTF-8: only who needs them is
// concerned.
// The reader of a long file passes a window, and parses an object again with more bytes when the
// window was too short.

#include <cstdint>
#include <string>
#include <string_view>

namespace assay::timeline {

enum class JsonStop : std::uint8_t { none, bad, end };

// Readable bytes that must follow the NUL, for loads of 16 bytes.
inline constexpr std::size_t kJsonPadding = 32;

class JsonCursor {
 public:
  // `end` points at the NUL.
  JsonCursor(const char* at, const char* end) : at_(at), end_(end) {}

  const char* at() const { return at_; }
  JsonStop stop() const { return stop_; }
  bool good() const { return stop_ == JsonStop::none; }
  bool damaged() const { return damaged_; }  // passed text that is not UTF-8
  bool odd() const { return odd_; }          // passed NaN or Infinity

  // The next byte after blanks, not consumed; 0 after a stop.
  char peek();
  // Consumes blanks and `c`; stops at any other byte.
  bool take(char c);
  // Consumes a comma or the closing bracket. True if another element follows.
  bool next_element(char close);

  // A string without its quotes; json_decode() resolves the escapes in `raw`.
  struct String {
    std::string_view raw = {};
    bool escaped = false;
    bool damaged = false;  // not UTF-8
  };
  String string();
  // The text of a string, number or literal; skips a nested value and returns "".
  String scalar();
  // Skips one value.
  void skip(int depth = 0);

 private:
  static constexpr int kMaxDepth = 200;
  void fail_here();
  void literal(std::string_view word);
  std::string_view number();
  bool no_number();

  const char* at_;
  const char* end_;
  JsonStop stop_ = JsonStop::none;
  bool damaged_ = false;
  bool odd_ = false;
};

// Resolves the escapes of a string; false for an invalid escape.
bool json_decode(std::string_view raw, std::string& out);

}  // namespace assay::timeline
