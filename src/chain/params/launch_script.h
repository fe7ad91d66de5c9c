#pragma once

// Launching scripts: how newer suites (PaddleNLP, PaddleFleetX, PaddleMIX) say what to measure of a
// large model. A file such as N4C32/gpt_bs16_fp16_DP1-MP8-PP4.sh sets variables and hands them, as
// arguments or by its environment, to a run_benchmark.sh that trains; in its `_set_params` stands
// by which word of the log the speed is found. Both are read, and never run, by shell_reader.h.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chain/params/launch.h"

namespace assay::chain::params {

// Whether a file is taken for a launching script: by its name, which ends in `.sh`.
bool is_launch_script(std::string_view path);

// Reads the script at `path` and the run_benchmark.sh that it names: it is started in `root`, the
// suite's checkout; where that is empty, the folder that holds what the script names is found by
// the script's own place. What cannot be read is a problem too.
ReadLaunch read_launch(const std::string& path, const std::string& root = {});

// "file:line:column: message" lines.
std::string describe(const std::vector<LaunchProblem>& problems);

}  // namespace assay::chain::params
