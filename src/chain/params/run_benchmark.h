#pragma once

#include <string_view>

#include "chain/params/launch.h"

namespace assay::chain::params {

// Evaluates `_set_params` of a run_benchmark.sh, without executing it: the record's names, the
// keyword, limits and problems. `text` is the script at `out.script.run_path`. `launch_text` is the
// launching script, for the positions of problems.
void read_run_benchmark(std::string_view text, std::string_view launch_text, ReadLaunch& out);

}  // namespace assay::chain::params
