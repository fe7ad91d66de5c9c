#pragma once

// Launching scripts, with which newer suites (PaddleNLP, PaddleFleetX, PaddleMIX) describe the
// benchmark of a large model. A file such as N4C32/gpt_bs16_fp16_DP1-MP8-PP4.sh sets variables and
// passes them, as arguments or in the environment, to a run_benchmark.sh that trains. The latter's
// `_set_params` names the word of the log that precedes the speed. shell_reader.h reads both files;
// nothing executes them.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chain/params/launch.h"

namespace assay::chain::params {

// True if the name ends in `.sh`.
bool is_launch_script(std::string_view path);

// Reads the script at `path` and the run_benchmark.sh that it names. The launch starts in `root`,
// the suite's checkout. If `root` is empty, it is found from the script's own path. An unreadable
// file is a problem in the result.
ReadLaunch read_launch(const std::string& path, const std::string& root = {});

// One "file:line:column: message" per line.
std::string describe(const std::vector<LaunchProblem>& problems);

}  // namespace assay::chain::params
