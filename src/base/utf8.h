#pragma once

// UTF-8 helpers for the case language and the reports.

#include <cstddef>
#include <string>
#include <string_view>

namespace assay {

// The index of the first byte that is NUL or not part of well-formed UTF-8 (RFC 3629); text.size()
// if there is none.
std::size_t find_bad_byte(std::string_view text);

// The text with "?" in place of each byte that is NUL or not part of well-formed UTF-8.
std::string replace_bad_bytes(std::string_view text);

// The number of code points in well-formed UTF-8.
std::size_t count_characters(std::string_view text);

// The length in bytes of the character that starts with this byte of well-formed UTF-8.
std::size_t character_size(char first);

// Appends the code point. Returns false and appends nothing for a surrogate or a value above
// U+10FFFF.
bool append_utf8(std::string& out, char32_t code_point);

}  // namespace assay
