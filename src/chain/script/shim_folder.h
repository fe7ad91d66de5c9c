#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/private_folder.h"
#include "base/result.h"

namespace assay::chain::script {

// A temporary folder of this user alone, whose `bin` has the shim under the name of every
// interpreter. A script that has `bin` in front of its PATH starts the shim.
class ShimFolder {
 public:
  // `shim` is the path of assay-shim.
  static Result<ShimFolder> create(const std::string& shim);

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
  PrivateFolder folder_;
  std::filesystem::path path_;  // without links
  std::string shim_;
};

}  // namespace assay::chain::script
