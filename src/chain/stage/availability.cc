#include "chain/stage/availability.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/fd.h"
#include "base/process.h"
#include "base/text.h"
#include "nvml/nvml.h"

namespace assay::chain::stage {
namespace {

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
  const bool other = !stage.needs_device.empty() && stage.needs_device != "gpu" &&
                     stage.needs_device != "cpu" && stage.device != "cpu";
  if (other && !says_yes(stage.argv.front(), kHasDevice, stage.needs_device)) {
    return fmt::format("needs the device {} (Paddle of {} sees none)", stage.needs_device,
                       stage.argv.front());
  }
  const bool many = stage.device.find(',') != std::string::npos && stage.hosts.empty();
  if (!many) return {};
  const std::size_t wanted = split_at(stage.device, ',').size();
  const std::size_t gpus = nvml_gpu_names().size();
  if (gpus == 0 || gpus >= wanted) return {};  // without any GPU the framework itself tells
  return fmt::format("needs {} GPUs (NVML sees {})", wanted, gpus);
}

}  // namespace assay::chain::stage
