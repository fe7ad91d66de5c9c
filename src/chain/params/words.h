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

// The words as one line that split_words (and a shell) reads back unchanged.
std::string join_words(const std::vector<std::string>& words);

}  // namespace assay::chain::params
