#pragma once

// The few things that assay does with plain text in many places.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Without the blanks and line ends at both ends.
std::string_view trimmed(std::string_view text);

// The parts between separators, empty ones as well; an empty text has none.
std::vector<std::string> split_at(std::string_view text, char separator);

// The text as one word of a shell's command line.
std::string shell_word(std::string_view text);

// The words as one line that a shell reads back unchanged.
std::string shell_line(const std::vector<std::string>& words);

// "1 case", "2 cases": for a noun that takes an s.
std::string count_of(std::uint64_t number, std::string_view noun);

// ASCII capitals made small.
std::string lowered(std::string_view text);

}  // namespace assay
