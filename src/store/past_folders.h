#pragma once

// The runs in the folders beside a run: usually the same corpus, earlier or with other builds.

#include <filesystem>
#include <string>
#include <vector>

#include "store/run_totals.h"

namespace assay {

inline constexpr std::size_t kPastRuns = 16;

// Totals of the kPastRuns runs beside this folder that were written last, newest first. Runs that
// cannot be read are left out.
std::vector<RunTotals> runs_beside(const std::filesystem::path& folder);

// The last part of a folder's path: "night" for "runs/night/".
std::string folder_name(const std::filesystem::path& folder);

}  // namespace assay
