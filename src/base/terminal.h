#pragma once

// Prints text for people. Nothing in src/ prints by another way, so no text of a case, a file or a
// framework controls a terminal or forges a line of a log. Colour and line width for terminals.

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace assay {

// Prints printable(text). After a failed write ferror(out) is set.
void show_text(std::FILE* out, std::string_view text);

// Prints printable(text), in which the colours of Terminal::paint() stay. A text of others could
// show in these colours, and do nothing else.
void show_painted(std::FILE* out, std::string_view text);

// Prints one_line(text) as a line of its own, at once.
void show_line(std::FILE* out, std::string_view text);

template <typename... Values>
void show(std::FILE* out, fmt::format_string<Values...> format, Values&&... values) {
  show_text(out, fmt::format(format, std::forward<Values>(values)...));
}

enum class Paint : std::uint8_t { bold, faint, red, green, yellow };

// What a text is laid out for. The default is a file or a pipe: no colour, and lines stay whole.
struct Terminal {
  bool is_tty = false;
  bool color = false;
  std::size_t width = 0;  // columns; 0: any

  // Of this descriptor. Only a terminal has colour, unless NO_COLOR is set (https://no-color.org)
  // or TERM is "dumb", and a width: COLUMNS, or else what the kernel reports (TIOCGWINSZ).
  static Terminal of(int fd);

  // The text in this colour.
  std::string paint(Paint paint, std::string_view text) const;
  // The text with each line broken at blanks, so that it fits the width. Continued lines have the
  // indent of their line. A word that is longer than a line stays whole.
  std::string wrap(std::string_view text) const;
  // The text cut to one line of the width.
  std::string cut(std::string_view text) const;
};

// The characters of a text, without escape sequences.
std::size_t columns_of(std::string_view text);

}  // namespace assay
