#pragma once

// The tolerances that would pass, from the error profiles of a stored run by API, dtype and
// direction. The files have the columns of PaddleAPITest's --test_tol and --accuracy_stable, and
// additional columns from the profiles.

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <tuple>

#include "base/result.h"
#include "measure/measurement.h"
#include "store/store.h"

namespace assay {

// The tensors of one API, dtype and direction. Values are infinite if no tolerance would pass.
struct ToleranceStat {
  std::uint64_t count = 0;  // tensors
  double abs_min = 0;
  double abs_max = 0;
  double abs_sum = 0;
  double rel_min = 0;
  double rel_max = 0;
  double rel_sum = 0;
  // For each rtol of kRtolGrid, the smallest atol with which all tensors pass.
  std::array<double, kRtolGrid.size()> atol_needed{};
};

// API, dtype, "forward" or "backward".
using ToleranceKey = std::tuple<std::string, std::string, std::string>;
using ToleranceStats = std::map<ToleranceKey, ToleranceStat>;

// Writes tol.csv (a line for each compared tensor) and tol_stat.csv into `folder`, and returns the
// contents of tol_stat.csv.
Result<ToleranceStats> write_tolerances(RunReader& run, const std::filesystem::path& folder);

// Writes stable.csv with each pair of executions of a case: "P1T1", "P1P2", …, with a suffix B for
// gradients. Writes no file for modes that execute a case once.
Status write_stability(RunReader& run, const std::filesystem::path& folder);

// Writes bitwise.csv: how far each API, dtype and direction is from equal bits. Returns how many
// APIs have only equal bits, and how many there are.
struct BitwiseShare {
  std::uint64_t equal = 0;  // APIs
  std::uint64_t apis = 0;
};
Result<BitwiseShare> write_bitwise(RunReader& run, const std::filesystem::path& folder);

// For a page: {"rtols": […], "rows": [[API, dtype, direction, tensors, ["atol" of each rtol]], …]}.
Result<nlohmann::json> tolerances_json(RunReader& run);

}  // namespace assay
