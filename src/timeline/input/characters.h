#pragma once

// ASCII character classes, independent of the locale.

namespace assay::timeline {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

}  // namespace assay::timeline
