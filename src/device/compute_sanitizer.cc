#include "device/compute_sanitizer.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <system_error>

#include "base/process.h"
#include "base/text.h"

namespace assay {
namespace {

constexpr const char* kProgram = "compute-sanitizer";
constexpr std::array<std::string_view, 3> kTools{"memcheck", "racecheck", "initcheck"};

// The sanitizer expands % in file names.
std::string escaped(const std::string& path) {
  std::string text;
  for (const char character : path) text += character == '%' ? "%%" : std::string(1, character);
  return text;
}

}  // namespace

Result<std::string> sanitizer_tool(std::string_view text) {
  const std::string wish = lowered(text);
  for (const std::string_view none : {"", "false", "0", "no", "n"}) {
    if (wish == none) return std::string();
  }
  for (const std::string_view usual : {"true", "1", "yes", "y"}) {
    if (wish == usual) return std::string(kTools.front());
  }
  for (const std::string_view tool : kTools) {
    if (wish == tool) return std::string(tool);
  }
  return usage_error(fmt::format(
      "--use_compute_sanitizer={}: takes memcheck (the same as True), racecheck or initcheck",
      text));
}

Result<std::string> find_compute_sanitizer() {
  if (auto found = find_program(kProgram)) return *found;
  const char* home = std::getenv("CUDA_HOME");
  const std::filesystem::path cuda = home != nullptr ? home : "/usr/local/cuda";
  std::error_code ignored;
  const std::filesystem::path there = cuda / "bin" / kProgram;
  if (std::filesystem::exists(there, ignored)) return there.string();
  return usage_error(
      fmt::format("--use_compute_sanitizer: {} is neither on PATH nor in {}; it comes with "
                  "NVIDIA's CUDA toolkit",
                  kProgram, there.parent_path().string()));
}

std::vector<std::string> sanitizer_command(const std::string& program, const std::string& tool,
                                           const std::filesystem::path& log) {
  std::vector<std::string> command{
      program, "--tool", tool, "--target-processes", "all", "--log-file", escaped(log.string()),
      // A fault ends the kernel, not the lane.
      "--destroy-on-device-error", "kernel",
      // The server itself uses no GPU; its lanes do.
      "--launch-timeout", "0", "--print-limit", "0", "--show-backtrace", "no"};
  // Failing API calls are not reported: frameworks use many of them as probes.
  if (tool == kTools.front()) command.insert(command.end(), {"--report-api-errors", "no"});
  return command;
}

std::vector<std::string> sanitizer_environment(const std::filesystem::path& log) {
  return {"ASSAY_SANITIZER_LOG=" + log.string(), "PYTORCH_NO_CUDA_MEMORY_CACHING=1",
          "FLAGS_use_system_allocator=true"};
}

}  // namespace assay
