#pragma once

// Runs a fork server under NVIDIA's compute-sanitizer, which checks the kernels of its lanes. The
// sanitizer writes its reports into one file for all processes, before the call that waits for a
// kernel returns. A report does not name its process, so one lane at a time runs under it. The lane
// reads the file (python/assay/sanitizer.py).

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

// The tool of --use_compute_sanitizer: memcheck for "True", empty for "False".
Result<std::string> sanitizer_tool(std::string_view text);

// The program, from PATH or from CUDA's folder. The error says how to get it.
Result<std::string> find_compute_sanitizer();

// The words to put before the command that runs under the sanitizer.
std::vector<std::string> sanitizer_command(const std::string& program, const std::string& tool,
                                           const std::filesystem::path& log);

// The environment entries for that command. They turn off the frameworks' memory pools: the
// sanitizer cannot see a bad access inside a pool.
std::vector<std::string> sanitizer_environment(const std::filesystem::path& log);

}  // namespace assay
