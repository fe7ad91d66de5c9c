#pragma once

// The runs beside a run: what came of the same corpus before, or with other builds.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "store/run_totals.h"

namespace assay {

// Runs in the folders beside this one, at most the kPastRuns that were written last. One that
// cannot be read is left out.
std::vector<RunTotals> runs_beside(const std::filesystem::path& folder);
inline constexpr std::size_t kPastRuns = 16;

// "night" of "runs/night/".
std::string run_name(const std::filesystem::path& folder);

// Those of the mode of `own`, and `own` itself, oldest first: [{"name", "build", "last_ms",
// "sampled", "outcomes"}, …]. A build is what frameworks, devices and assay the run was made with.
nlohmann::json runs_json(const std::vector<RunTotals>& others, const RunTotals& own);

}  // namespace assay
