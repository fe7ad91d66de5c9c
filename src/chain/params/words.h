#pragma once

// Words of a command line, and back.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::chain::params {

// Splits a command into its argv the way a shell reads quotes and backslashes, and nothing else of
// what a shell does: `;`, `$(…)`, backticks, globs, `~` and `#` are plain characters.
// Fails on a quote that does not close.
Result<std::vector<std::string>> split_words(std::string_view command);

// One word so that split_words (and a shell) reads it back unchanged.
std::string quote_word(std::string_view word);
std::string join_words(const std::vector<std::string>& words);

// The parts of `text` between separators; "" gives no part at all, as an unquoted list in bash
// does.
std::vector<std::string> split_list(std::string_view text, char separator);

std::string_view trim(std::string_view text);

}  // namespace assay::chain::params
