#pragma once

#include <string>
#include <string_view>

#include "case/parser.h"

namespace assay {

// Formats a parse error in three lines: "WHERE:COLUMN: message", the text, and a caret under the
// column. WHERE is usually "FILE:LINE". A long text is cut around the caret, with "…". Control
// characters and bytes that are not UTF-8 become '?', so that a terminal does not act on them.
std::string describe(const ParseError& error, std::string_view where, std::string_view text);

}  // namespace assay
