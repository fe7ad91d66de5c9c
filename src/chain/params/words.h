#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::chain::params {

// Splits a command into argv. Quotes and backslashes are those of a shell; `;`, `$(…)`, backticks,
// globs, `~` and `#` are plain characters. An unclosed quote is an error. shell_line (base/text.h)
// is the inverse.
Result<std::vector<std::string>> split_words(std::string_view command);

// An error if a params file's model_name, which names the folder of its results, leads out of the
// folder that all results are in.
Status check_model(const std::string& name);

}  // namespace assay::chain::params
