#include "device/mps.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>

#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "base/fd.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDaemon = "nvidia-cuda-mps-control";
constexpr std::string_view kFolder = "assay-mps-";
constexpr const char* kLock = "lock";
constexpr const char* kPipeVariable = "CUDA_MPS_PIPE_DIRECTORY";
constexpr std::chrono::seconds kStartLimit{10};
constexpr std::chrono::seconds kQuitLimit{5};
constexpr std::chrono::milliseconds kLookEvery{20};

std::vector<std::string> own_folder(const fs::path& folder) {
  return {fmt::format("{}={}", kPipeVariable, folder.string()),
          fmt::format("CUDA_MPS_LOG_DIRECTORY={}", folder.string())};
}

// Makes a locked file in the folder. The file gets its name after it is locked.
Result<Fd> lock_folder(const fs::path& folder) {
  ASSAY_TRY(Fd lock, open_for_append(folder / "lock.new"));
  std::error_code error;
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
    fs::rename(folder / "lock.new", folder / kLock, error);
  }
  if (error) return fail(fmt::format("cannot lock {}: {}", folder.string(), error.message()));
  return lock;
}

// Removes folders that killed processes have left in `folder`.
void remove_abandoned(const fs::path& temporary) {
  std::error_code error;
  for (fs::directory_iterator entry(temporary, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(kFolder)) continue;
    // Not created here: a folder that is being set up has no lock file yet.
    const Fd lock(::open((entry->path() / kLock).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
    std::error_code ignored;
    fs::remove_all(entry->path(), ignored);
  }
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
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  remove_abandoned(temporary);
  std::string name = (temporary / fmt::format("{}XXXXXX", kFolder)).string();
  if (::mkdtemp(name.data()) == nullptr) return errno_error("cannot make " + name);
  service.folder_ = name;
  ASSAY_TRY(service.lock_, lock_folder(service.folder_));
  SpawnOptions options;
  // The daemon serves all GPUs; each client selects its own with CUDA_VISIBLE_DEVICES.
  options.argv = {"env", "-u", "CUDA_VISIBLE_DEVICES", kDaemon, "-f"};
  options.environment = own_folder(service.folder_);
  ASSAY_TRY(const Fd log, open_for_append(service.folder_ / "daemon.log"));
  options.fds = {{log.get(), 1}, {log.get(), 2}};
  ASSAY_TRY(service.daemon_, Process::spawn(options));
  const auto give_up = std::chrono::steady_clock::now() + kStartLimit;
  while (!fs::exists(service.folder_ / "control", error)) {
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

MpsService::MpsService(MpsService&& other) noexcept
    : folder_(std::exchange(other.folder_, {})),
      lock_(std::move(other.lock_)),
      daemon_(std::move(other.daemon_)) {}

MpsService& MpsService::operator=(MpsService&& other) noexcept {
  std::swap(folder_, other.folder_);
  std::swap(lock_, other.lock_);
  std::swap(daemon_, other.daemon_);
  return *this;
}

MpsService::~MpsService() {
  if (folder_.empty()) return;
  if (daemon_.running()) {
    (void)ask_to_quit(folder_);
    (void)daemon_.stop(kQuitLimit);
  }
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string MpsService::environment() const {
  return fmt::format("{}={}", kPipeVariable, folder_.string());
}

}  // namespace assay
