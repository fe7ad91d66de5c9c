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

// The length of the digits that the text starts with.
std::size_t digits_at_front(std::string_view text);

// The text quoted as one word for a POSIX shell.
std::string shell_word(std::string_view text);

// The words quoted and joined to one command line for a POSIX shell.
std::string shell_line(const std::vector<std::string>& words);

// "1 case", "2 cases", for nouns with a regular plural.
std::string count_of(std::uint64_t number, std::string_view noun);

// The text without power over a terminal. Control characters (C0, C1, DEL), line separators and
// characters that turn the direction of text become \uXXXX, which JSON and the case language read
// back; bytes that are not UTF-8 become \xXX. Colours (CSI … m) go. Newlines and tabs stay.
std::string printable(std::string_view text);

// printable() as one line: a newline becomes \n, so that a field cannot start a line of its own.
std::string one_line(std::string_view text);

// Whether brackets and braces outside of strings in double quotes nest deeper than `limit`.
bool nests_deeper(std::string_view json, std::size_t limit);

// The text with ASCII letters in lower case.
std::string lowered(std::string_view text);

}  // namespace assay
