#include "chain/script/shim_folder.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace assay::chain::script {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> kPrograms{"python",      "python2", "python3",
                                                    "paddle2onnx", "adb",     "fleetrun"};
constexpr int kNewestPython = 16;  // python3.16

}  // namespace

Result<ShimFolder> ShimFolder::create(const std::string& shim) {
  std::error_code error;
  if (!fs::exists(shim, error)) return fail(fmt::format("{} is missing beside assay", shim));
  std::string name = (fs::temp_directory_path(error) / "assay-script-XXXXXX").string();
  if (error || ::mkdtemp(name.data()) == nullptr) return errno_error("cannot create " + name);
  ShimFolder folder;
  folder.path_ = fs::canonical(name, error);
  folder.shim_ = shim;
  fs::create_directories(folder.programs(), error);
  if (error) return fail(fmt::format("cannot write to {}: {}", name, error.message()));
  for (const std::string_view program : kPrograms) folder.add(program);
  for (int minor = 5; minor <= kNewestPython; ++minor) folder.add(fmt::format("python3.{}", minor));
  return folder;
}

ShimFolder::ShimFolder(ShimFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), shim_(std::move(other.shim_)) {}

ShimFolder::~ShimFolder() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
}

void ShimFolder::add(std::string_view name) const {
  std::error_code error;
  fs::create_symlink(shim_, programs() / name, error);
}

}  // namespace assay::chain::script
