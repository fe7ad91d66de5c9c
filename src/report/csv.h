#pragma once

#include <string>
#include <string_view>

namespace assay {

// A field of a line of CSV: one line, in quotes where it has to be (RFC 4180). A spreadsheet would
// take a text that begins with = + - @ or a tab for a formula, so an apostrophe comes before it.
// Numbers are not passed through here.
std::string csv_field(std::string_view text);

}  // namespace assay
