#include "chain/script/shim_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/atomic_file.h"
#include "chain/params/standard.h"

namespace assay::chain::script {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> kPrograms{"python",      "python2", "python3",
                                                    "paddle2onnx", "adb",     "fleetrun"};
constexpr int kNewestPython = 16;  // python3.16

// By the names of run_benchmark.sh's `_set_params`, which are the same in all suites.
constexpr std::string_view kRunModel = R"sh(function _run() {
  _train
  [ "${PROFILING}" = true ] || python "${BENCHMARK_ROOT}/scripts/analysis.py" --filename "${log_file}" \
    --speed_log_file "${speed_log_file}" --model_name "${model_name}" --base_batch_size "${base_batch_size}" \
    --run_mode "${run_mode}" --fp_item "${fp_item}" --keyword "${keyword}" --skip_steps "${skip_steps}" \
    --device_num "${device_num}" --speed_unit "${speed_unit}" --convergence_key "${convergence_key}" \
    ${model_mode:+--model_mode "${model_mode}"} ${is_large_model:+--is_large_model "${is_large_model}"}
}
)sh";

// The folder for temporary files. Where the user has not set TMPDIR and memory has room, its disk:
// a copy of a project has thousands of links, and each takes a disk up to a millisecond.
fs::path temporary_folder(std::error_code& error) {
  constexpr const char* kMemory = "/dev/shm";
  constexpr std::uint64_t kRoom = 512 << 20;
  struct statvfs disk {};
  const bool has_room = ::statvfs(kMemory, &disk) == 0 && disk.f_bavail * disk.f_frsize > kRoom &&
                        (disk.f_flag & ST_NOEXEC) == 0 && ::access(kMemory, W_OK) == 0;
  if (std::getenv("TMPDIR") == nullptr && has_room) return kMemory;
  return fs::temp_directory_path(error);
}

// Locks the folder; none if another process holds it.
Fd locked_folder(const fs::path& folder) {
  Fd held(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return held && ::flock(held.get(), LOCK_EX | LOCK_NB) == 0 ? std::move(held) : Fd();
}

// Removes the folders of killed processes. A living process holds the lock of its folder, whatever
// its number and its PID namespace are.
void remove_stale(const fs::path& parent, const std::string& start) {
  std::error_code error;
  for (fs::directory_iterator it(parent, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    if (!it->path().filename().string().starts_with(start)) continue;
    std::error_code ignored;
    if (const Fd held = locked_folder(it->path())) fs::remove_all(it->path(), ignored);
  }
}

}  // namespace

Result<ShimFolder> ShimFolder::create(const std::string& shim) {
  std::error_code error;
  if (!fs::exists(shim, error)) return fail(fmt::format("{} is missing beside assay", shim));
  const fs::path parent = temporary_folder(error);
  const std::string start = fmt::format("assay-script-{}-", ::geteuid());
  if (!error) remove_stale(parent, start);
  ShimFolder folder;
  folder.shim_ = shim;
  std::string name;
  // Another process may take the new folder for a stale one until it is locked. Some file systems
  // lock no folders; nobody removes anything there.
  constexpr int kTries = 10;
  for (int tries = 0; tries < kTries && (!folder.lock_ || !fs::exists(name)); ++tries) {
    ::rmdir(name.c_str());
    name = (parent / (start + "XXXXXX")).string();
    if (error || ::mkdtemp(name.data()) == nullptr) return errno_error("cannot create " + name);
    folder.lock_ = locked_folder(name);
  }
  folder.path_ = fs::canonical(name, error);
  fs::create_directories(folder.programs(), error);
  if (error) return fail(fmt::format("cannot write to {}: {}", name, error.message()));
  for (const std::string_view program : kPrograms) folder.add(program);
  for (int minor = 5; minor <= kNewestPython; ++minor) folder.add(fmt::format("python3.{}", minor));
  return folder;
}

ShimFolder::ShimFolder(ShimFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      shim_(std::move(other.shim_)),
      lock_(std::move(other.lock_)) {}

ShimFolder::~ShimFolder() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
}

void ShimFolder::add(std::string_view name) const {
  std::error_code error;
  fs::create_symlink(shim_, programs() / name, error);
}

Result<std::string> ShimFolder::add_standard() const {
  const fs::path path = path_ / "standard_chain.sh";
  ASSAY_CHECK(write_file(path, params::standard_script()));
  return path.string();
}

Result<std::string> ShimFolder::add_benchmark() const {
  const char* given = std::getenv("BENCHMARK_ROOT");
  if (given != nullptr && *given != '\0') return std::string();
  const fs::path root = path_ / "benchmark";
  std::error_code error;
  fs::create_directories(root / "scripts", error);
  ASSAY_CHECK(write_file(root / "scripts" / "run_model.sh", kRunModel));
  return "BENCHMARK_ROOT=" + root.string();
}

}  // namespace assay::chain::script
