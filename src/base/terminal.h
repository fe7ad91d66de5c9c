#pragma once

// Prints text for people. Nothing in src/ prints by another way, so no text of a case, a file or a
// framework controls a terminal or forges a line of a log.

#include <fmt/format.h>

#include <cstdio>
#include <string_view>
#include <utility>

namespace assay {

// Prints printable(text). After a failed write ferror(out) is set.
void show_text(std::FILE* out, std::string_view text);

// Prints one_line(text) as a line of its own, at once.
void show_line(std::FILE* out, std::string_view text);

template <typename... Values>
void show(std::FILE* out, fmt::format_string<Values...> format, Values&&... values) {
  show_text(out, fmt::format(format, std::forward<Values>(values)...));
}

}  // namespace assay
