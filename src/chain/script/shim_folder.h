#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace assay::chain::script {

// A temporary folder of this user alone, whose `bin` has the shim under the name of every
// interpreter. A script that has `bin` in front of its PATH starts the shim. The destructor removes
// it. create() also removes the folders that killed processes of this user have left.
class ShimFolder {
 public:
  // `shim` is the path of assay-shim.
  static Result<ShimFolder> create(const std::string& shim);
  ShimFolder(ShimFolder&& other) noexcept;
  ShimFolder& operator=(ShimFolder&&) = delete;
  ShimFolder(const ShimFolder&) = delete;
  ShimFolder& operator=(const ShimFolder&) = delete;
  ~ShimFolder();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path programs() const { return path_ / "bin"; }
  // Adds a name for the shim.
  void add(std::string_view name) const;
  // Writes the standard script there and returns its path.
  Result<std::string> add_standard() const;
  // Stands in for the benchmark repository that launching scripts need: trains, then starts
  // `python …/scripts/analysis.py`. Returns the entry BENCHMARK_ROOT=PATH for the environment,
  // or "" if the user has set one.
  Result<std::string> add_benchmark() const;

 private:
  ShimFolder() = default;
  std::filesystem::path path_;
  std::string shim_;
  Fd lock_;  // of the folder, while this process lives
};

}  // namespace assay::chain::script
