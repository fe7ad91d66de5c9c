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

// An error if the model_name of a params file leads out of the folder of all results: assay writes
// the results of the file into a subfolder of this name.
Status check_model(const std::string& name);

}  // namespace assay::chain::params
