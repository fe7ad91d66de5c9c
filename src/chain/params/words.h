#pragma once

// Words of a command line; shell_line (base/text.h) is the way back.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::chain::params {

// Splits a command into its argv the way a shell reads quotes and backslashes, and nothing else of
// what a shell does: `;`, `$(…)`, backticks, globs, `~` and `#` are plain characters.
// Fails on a quote that does not close.
Result<std::vector<std::string>> split_words(std::string_view command);

}  // namespace assay::chain::params
