#pragma once

// A run_benchmark.sh: what its `_set_params` makes of the arguments and variables that a launching
// script hands it. It is read, never run.

#include <string_view>

#include "chain/params/launch.h"

namespace assay::chain::params {

// Fills in what only run_benchmark.sh says of the launch (the record's names, the keyword, limits),
// and what is wrong with it. `text` is the script at `out.script.run_path`, `launch_text` the
// launching script, where a value is told of that stands there.
void read_run_benchmark(std::string_view text, std::string_view launch_text, ReadLaunch& out);

}  // namespace assay::chain::params
