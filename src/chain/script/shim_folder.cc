#include "chain/script/shim_folder.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <system_error>

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

// The memory's disk where it has room and the user has not set TMPDIR; else empty. A copy of a
// project has thousands of links, and each takes a disk up to a millisecond.
fs::path roomy_memory() {
  constexpr const char* kMemory = "/dev/shm";
  constexpr std::uint64_t kRoom = 512 << 20;
  struct statvfs disk {};
  const bool has_room = ::statvfs(kMemory, &disk) == 0 && disk.f_bavail * disk.f_frsize > kRoom &&
                        (disk.f_flag & ST_NOEXEC) == 0 && ::access(kMemory, W_OK) == 0;
  return std::getenv("TMPDIR") == nullptr && has_room ? kMemory : "";
}

}  // namespace

Result<ShimFolder> ShimFolder::create(const std::string& shim) {
  std::error_code error;
  if (!fs::exists(shim, error)) return fail(fmt::format("{} is missing beside assay", shim));
  ShimFolder folder;
  folder.shim_ = shim;
  ASSAY_TRY(folder.folder_, PrivateFolder::make("shim", roomy_memory()));
  folder.path_ = fs::canonical(folder.folder_.path(), error);
  fs::create_directory(folder.programs(), error);
  if (error) return fail("cannot write to " + folder.path_.string() + ": " + error.message());
  for (const std::string_view program : kPrograms) folder.add(program);
  for (int minor = 5; minor <= kNewestPython; ++minor) folder.add(fmt::format("python3.{}", minor));
  return folder;
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
