#include "device/mps.h"

#include <fmt/format.h>

#include <chrono>
#include <system_error>
#include <thread>

#include "base/fd.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDaemon = "nvidia-cuda-mps-control";
constexpr const char* kPipeVariable = "CUDA_MPS_PIPE_DIRECTORY";
constexpr std::chrono::seconds kStartLimit{10};
constexpr std::chrono::seconds kQuitLimit{5};
constexpr std::chrono::milliseconds kLookEvery{20};

std::vector<std::string> own_folder(const fs::path& folder) {
  return {fmt::format("{}={}", kPipeVariable, folder.string()),
          fmt::format("CUDA_MPS_LOG_DIRECTORY={}", folder.string())};
}

// Asks a started daemon to end itself and its servers.
Status ask_to_quit(const fs::path& folder) {
  ASSAY_TRY(FdPair words, make_pipe());
  constexpr std::string_view kQuit = "quit\n";
  ASSAY_CHECK(write_all(words.second.get(), std::as_bytes(std::span(kQuit))));
  words.second.reset();
  SpawnOptions options;
  options.argv = {kDaemon};
  options.environment = own_folder(folder);
  ASSAY_TRY(const Fd log, open_for_append(folder / "quit.log"));
  options.fds = {{words.first.get(), 0}, {log.get(), 1}, {log.get(), 2}};
  ASSAY_TRY(Process process, Process::spawn(options));
  ASSAY_TRY([[maybe_unused]] const ExitStatus status, process.wait_at_most(kQuitLimit));
  return {};
}

}  // namespace

Result<MpsService> MpsService::start() {
  MpsService service;
  ASSAY_TRY(service.folder_, PrivateFolder::make("mps"));
  SpawnOptions options;
  // The daemon serves all GPUs; each client selects its own with CUDA_VISIBLE_DEVICES.
  options.argv = {"env", "-u", "CUDA_VISIBLE_DEVICES", kDaemon, "-f"};
  options.environment = own_folder(service.folder_.path());
  ASSAY_TRY(const Fd log, open_for_append(service.folder_.path() / "daemon.log"));
  options.fds = {{log.get(), 1}, {log.get(), 2}};
  ASSAY_TRY(service.daemon_, Process::spawn(options));
  const auto give_up = std::chrono::steady_clock::now() + kStartLimit;
  std::error_code error;
  while (!fs::exists(service.folder_.path() / "control", error)) {
    ExitStatus status;
    ASSAY_TRY(const bool ended, service.daemon_.try_wait(status));
    if (ended) return fail(fmt::format("{}: {}", kDaemon, status.describe()));
    if (std::chrono::steady_clock::now() > give_up) {
      return fail(fmt::format("{} does not begin to listen", kDaemon));
    }
    std::this_thread::sleep_for(kLookEvery);
  }
  return service;
}

MpsService::~MpsService() {
  if (!daemon_.running()) return;
  (void)ask_to_quit(folder_.path());
  (void)daemon_.stop(kQuitLimit);
}

std::string MpsService::environment() const {
  return fmt::format("{}={}", kPipeVariable, folder_.path().string());
}

}  // namespace assay
