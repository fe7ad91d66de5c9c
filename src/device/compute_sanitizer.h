#pragma once

// NVIDIA's compute-sanitizer around a fork server, so that the lanes which the server forks have
// their kernels looked at. It writes what it finds into one file for all of them, before the call
// that waits for a kernel returns, and does not say which process it is of: so one lane at a time
// works under it. The lane reads the file (python/assay/sanitizer.py).

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

// The tool that --use_compute_sanitizer names: memcheck for "True", none (empty) for "False".
Result<std::string> sanitizer_tool(std::string_view text);

// The program, from PATH or from CUDA's folder.
Result<std::string> find_compute_sanitizer();

// What stands before the command that it runs.
std::vector<std::string> sanitizer_command(const std::string& program, const std::string& tool,
                                           const std::filesystem::path& log);

// "NAME=value" for that command. Frameworks keep freed memory for later, and in what they keep no
// access is out of bounds and no byte unset: they are told to leave that.
std::vector<std::string> sanitizer_environment(const std::filesystem::path& log);

}  // namespace assay
