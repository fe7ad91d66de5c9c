#include "chain/stage/availability.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>

#include "base/fd.h"
#include "base/process.h"

namespace assay::chain::stage {
namespace {

bool has_program(const std::string& program, const std::string& directory) {
  const std::optional<std::string> found = find_program(program);
  if (!found) return false;
  const bool relative = found->front() != '/' && !directory.empty();
  return ::access((relative ? directory + "/" + *found : *found).c_str(), X_OK) == 0;
}

}  // namespace

// Asks the interpreter where the module would come from; importing it would take seconds.
bool Availability::has_module(const std::string& python, const std::string& module) {
  const auto [entry, fresh] = modules_.try_emplace(python + " " + module, false);
  if (!fresh) return entry->second;
  SpawnOptions options;
  options.argv = {
      python, "-c",
      "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)",
      module};
  // What a stand-in for an interpreter says of itself is no news for the user.
  const auto nowhere = open_for_append("/dev/null");
  if (nowhere) options.fds = {{nowhere->get(), 1}, {nowhere->get(), 2}};
  auto process = Process::spawn(options);
  if (process) {
    pollfd ended{process->pidfd(), POLLIN, 0};
    constexpr int kLongest = 60'000;  // ms; a module that cannot be looked up is not there
    if (::poll(&ended, 1, kLongest) != 1) process->signal_group(SIGKILL);
    const auto status = process->wait();
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
  if (!stage.needs_module.empty() && !has_module(stage.argv.front(), stage.needs_module)) {
    return fmt::format("needs the Python module {} (for {})", stage.needs_module,
                       stage.argv.front());
  }
  return {};
}

}  // namespace assay::chain::stage
