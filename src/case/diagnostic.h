#pragma once

// Parse errors for people.

#include <string>
#include <string_view>

#include "case/parser.h"

namespace assay {

// Three lines: "WHERE:COLUMN: message", the text, and a caret under the column. WHERE is such as
// "FILE:LINE". Of a long text only what is near the caret is shown, with "…" where it is cut; what
// a terminal might act on (control characters, bytes that are not UTF-8) becomes '?'.
std::string describe(const ParseError& error, std::string_view where, std::string_view text);

}  // namespace assay
