#include "chain/stage/availability.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/fd.h"
#include "base/process.h"
#include "device/nvml.h"

namespace assay::chain::stage {
namespace {

bool has_program(const std::string& program, const std::string& directory) {
  const std::optional<std::string> found = find_program(program);
  if (!found) return false;
  const bool relative = found->front() != '/' && !directory.empty();
  return ::access((relative ? directory + "/" + *found : *found).c_str(), X_OK) == 0;
}

// Only locates the module, because importing it would take seconds.
constexpr const char* kHasModule =
    "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)";

// Paddle lists devices as `gpu:0`; plugged-in device types are in a list of their own.
constexpr const char* kHasDevice =
    "import sys, paddle.device as d; "
    "seen = d.get_available_device() + (d.get_available_custom_device() or []); "
    "sys.exit(sys.argv[1] not in [name.split(':')[0] for name in seen])";

}  // namespace

bool Availability::says_yes(const std::string& python, const std::string& program,
                            const std::string& about) {
  const auto [entry, fresh] = answers_.try_emplace(python + " " + program + " " + about, false);
  if (!fresh) return entry->second;
  SpawnOptions options;
  options.argv = {python, "-c", program, about};
  // Output of a stand-in interpreter would only confuse the user.
  const auto nowhere = open_for_append("/dev/null");
  if (nowhere) options.fds = {{nowhere->get(), 1}, {nowhere->get(), 2}};
  auto process = Process::spawn(options);
  if (process) {
    constexpr std::chrono::seconds kLongest{60};  // after that the answer is no
    const auto status = process->wait_at_most(kLongest);
    entry->second = status && status->ok();
  }
  return entry->second;
}

std::string Availability::missing(const plan::Stage& stage) {
  if (!stage.needs_program.empty() && !has_program(stage.needs_program, stage.directory)) {
    return fmt::format("needs {}", stage.needs_program);
  }
  if (!stage.needs_module.empty() && !has_program(stage.argv.front(), stage.directory)) {
    return fmt::format("needs {}", stage.argv.front());
  }
  if (!stage.needs_module.empty() &&
      !says_yes(stage.argv.front(), kHasModule, stage.needs_module)) {
    return fmt::format("needs the Python module {} (for {})", stage.needs_module,
                       stage.argv.front());
  }
  if (!stage.needs_device.empty() &&
      !says_yes(stage.argv.front(), kHasDevice, stage.needs_device)) {
    return fmt::format("needs the device {} (Paddle of {} sees none)", stage.needs_device,
                       stage.argv.front());
  }
  const std::size_t gpus = stage.needs_gpus == 0 ? 0 : nvml_gpu_names().size();
  if (gpus < stage.needs_gpus) {
    return fmt::format("needs {} GPU{} (NVML sees {})", stage.needs_gpus,
                       stage.needs_gpus == 1 ? "" : "s", gpus);
  }
  if (!stage.needs_variable.empty() && std::getenv(stage.needs_variable.c_str()) == nullptr) {
    return fmt::format("needs many machines: start it on each, with {} set", stage.needs_variable);
  }
  return {};
}

}  // namespace assay::chain::stage
