#pragma once

#include <string_view>
#include <vector>

#include "chain/params/params_text.h"

namespace assay::chain::params {

// What is wrong with a line's value. Kinds: `any`; `text` something; `program` and `command` words
// of a command line, `program` not null, `maybe` may be empty; `gpus` entries of a gpu_list;
// `trainers`; `numbers` one number or mode=N|mode=N; `counts` a list of numbers; `settings`
// NAME=value;NAME=value; `words:A,B` a list of these words.
std::vector<Problem> value_problems(std::string_view kind, const Line& line);

// The value for a mode: `a=1|b=2` gives "1" for a, "" for an absent mode.
std::string_view value_for_mode(std::string_view value, std::string_view mode);

}  // namespace assay::chain::params
