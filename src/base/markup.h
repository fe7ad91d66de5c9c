#pragma once

// Escapes untrusted text for HTML, XML, Markdown and CSV.

#include <string>
#include <string_view>

namespace assay {

// Escapes text for content and for attributes in double quotes. A newline becomes a reference,
// because an attribute turns a bare one into a blank. Control characters, bytes that are not
// UTF-8 (surrogates too), U+FFFE and U+FFFF, which XML 1.0 cannot hold, become '?'.
std::string escape_markup(std::string_view text);

// The text as one line of GitHub's Markdown, in which nothing is markup or mentions a person.
std::string escape_markdown(std::string_view text);

// A field of a line of CSV: one line, in quotes where it has to be (RFC 4180). A spreadsheet would
// take a text that begins with = + - @ or a tab for a formula, so an apostrophe comes before it.
// Numbers are not passed through here.
std::string csv_field(std::string_view text);

}  // namespace assay
