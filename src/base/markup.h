#pragma once

// Escapes untrusted text for HTML, XML and Markdown.

#include <string>
#include <string_view>

namespace assay {

// Escapes text for content and for attributes in double quotes. A newline becomes a reference,
// because an attribute turns a bare one into a blank. Control characters, bytes that are not
// UTF-8 (surrogates too), U+FFFE and U+FFFF, which XML 1.0 cannot hold, become '?'.
std::string escape_markup(std::string_view text);

// The text as one line of GitHub's Markdown, in which nothing is markup or mentions a person.
std::string escape_markdown(std::string_view text);

}  // namespace assay
