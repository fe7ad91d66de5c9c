#pragma once

// The standard script, for projects whose suite has none: standard_chain.sh, which is part of the
// program. It reads train_infer params files of the short and the long layout by place.

#include <string>
#include <string_view>
#include <vector>

#include "chain/params/params_text.h"

namespace assay::chain::params {

std::string_view standard_script();

// What the standard script would read wrong in a params file: lines and headings that are missing,
// surplus, misspelt or in the wrong order, and values of the wrong kind. Empty if the file is good.
std::vector<Problem> standard_problems(std::string_view text);

// The same for a file that the suite's own script reads: its one fault if it fits the layout
// otherwise, and nothing if it does not, because its suite may have a layout of its own.
std::vector<Problem> likely_problems(std::string_view text);

// One "file:line:column: message" per line, as compilers print them.
std::string describe(std::string_view file, const std::vector<Problem>& problems);

}  // namespace assay::chain::params
