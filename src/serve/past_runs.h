#pragma once

// Earlier runs beside a run, such as runs of the same corpus with other builds.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "store/run_totals.h"

namespace assay {

// The kPastRuns most recently written runs in the folders beside this one. Skips unreadable runs.
std::vector<RunTotals> runs_beside(const std::filesystem::path& folder);
inline constexpr std::size_t kPastRuns = 16;

// "night" of "runs/night/".
std::string run_name(const std::filesystem::path& folder);

// `own` and the others of its mode, oldest first: [{"name", "build", "last_ms", "sampled",
// "outcomes"}, …]. A build names the run's frameworks, devices and version of assay.
nlohmann::json runs_json(const std::vector<RunTotals>& others, const RunTotals& own);

}  // namespace assay
