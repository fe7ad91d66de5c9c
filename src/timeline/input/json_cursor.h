#pragma once

// A strict JSON reader over bytes that end with a NUL: it neither copies nor allocates, and it
// stops, telling why, at what no JSON is (NaN, 1e400, bytes that are not UTF-8, a raw newline in a
// string) or where the bytes end. Objects of a trace are short; a reader of a long file gives it
// a window and starts the object again when the window was too short.

#include <cstdint>
#include <string>
#include <string_view>

namespace assay::timeline {

enum class JsonStop : std::uint8_t { none, bad, end };

// Bytes behind the NUL that may be read (not: believed), for loads of 16 bytes.
inline constexpr std::size_t kJsonPadding = 32;

class JsonCursor {
 public:
  // `end` points at the NUL.
  JsonCursor(const char* at, const char* end) : at_(at), end_(end) {}

  const char* at() const { return at_; }
  JsonStop stop() const { return stop_; }
  bool good() const { return stop_ == JsonStop::none; }

  // The byte that comes after blanks, without taking it; 0 when reading has stopped.
  char peek();
  // Takes `c`, after blanks; stops when another byte is there.
  bool take(char c);
  // Takes what stands between objects' and arrays' elements: true when another one follows,
  // false behind the closing bracket or when reading has stopped.
  bool next_element(char close);

  // A string without its quotes. `raw` has its escapes still (decode() takes them out).
  struct String {
    std::string_view raw;
    bool escaped = false;
  };
  String string();
  // The text of a string, number or literal; nested values are passed over and give "".
  String scalar();
  // Passes over a value of any kind.
  void skip(int depth = 0);

 private:
  static constexpr int kMaxDepth = 200;
  void fail_here();
  void literal(std::string_view word);
  std::string_view number();

  const char* at_;
  const char* end_;
  JsonStop stop_ = JsonStop::none;
};

// The string with its escapes replaced; false where an escape means no character.
bool json_decode(std::string_view raw, std::string& out);

}  // namespace assay::timeline
