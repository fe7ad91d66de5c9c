#pragma once

// The little of UTF-8 that the case language and the reports need.

#include <cstddef>
#include <string>
#include <string_view>

namespace assay {

// Where the first byte stands that is NUL or no part of well-formed UTF-8 (RFC 3629); text.size()
// when there is none.
std::size_t find_bad_byte(std::string_view text);

// Code points in well-formed UTF-8.
std::size_t count_characters(std::string_view text);

// Bytes of the character that begins with this byte of well-formed UTF-8.
std::size_t character_size(char first);

// False, and nothing is appended, when the code point is a surrogate or above U+10FFFF.
bool append_utf8(std::string& out, char32_t code_point);

}  // namespace assay
