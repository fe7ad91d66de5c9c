#pragma once

// What readers of formats ask of one character: ASCII alone, whatever the locale says.

namespace assay::timeline {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

}  // namespace assay::timeline
