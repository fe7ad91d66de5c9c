#pragma once

// Helpers for plain text.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// The text without leading and trailing blanks and newlines.
std::string_view trimmed(std::string_view text);

// The parts between separators, including empty parts. An empty text has no parts.
std::vector<std::string> split_at(std::string_view text, char separator);

// The text quoted as one word for a POSIX shell.
std::string shell_word(std::string_view text);

// The words quoted and joined to one command line for a POSIX shell.
std::string shell_line(const std::vector<std::string>& words);

// "1 case", "2 cases", for nouns with a regular plural.
std::string count_of(std::uint64_t number, std::string_view noun);

// The text with ASCII letters in lower case.
std::string lowered(std::string_view text);

}  // namespace assay
