#include "case/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"

namespace assay {
namespace {

// A character at the start of `text`: its form of one column and its length in bytes.
struct Shown {
  std::string_view character;
  std::size_t bytes;
};

Shown show_front(std::string_view text) {
  const std::string_view character = text.substr(0, std::min(character_size(text[0]), text.size()));
  if (find_bad_byte(character) != character.size()) return {"?", 1};
  return {text[0] == '\t' || one_line(character) != character ? "?" : character, character.size()};
}

}  // namespace

std::string describe(const ParseError& error, std::string_view where, std::string_view text) {
  constexpr std::size_t kBefore = 60;
  constexpr std::size_t kAfter = 40;
  const std::size_t first = error.column > kBefore ? error.column - kBefore : 1;
  const std::size_t last = error.column + kAfter;

  std::string window = first > 1 ? "…" : "";
  const std::size_t caret = error.column - first + (first > 1 ? 1 : 0);
  std::size_t column = 1;
  while (!text.empty() && column <= last) {
    const Shown shown = show_front(text);
    if (column >= first) window += shown.character;
    text.remove_prefix(shown.bytes);
    ++column;
  }
  if (!text.empty()) window += "…";
  return fmt::format("{}:{}: {}\n  {}\n  {:>{}}\n", one_line(where), error.column, error.message,
                     window, "^", caret + 1);
}

}  // namespace assay
