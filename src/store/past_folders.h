#pragma once

// The runs in the folders of a folder: usually the same corpus, on other days or with other builds.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "store/run_totals.h"

namespace assay {

inline constexpr std::size_t kPastRuns = 31;  // a month of nights

struct RunFolder {
  std::filesystem::path path;
  std::filesystem::file_time_type written;  // when a result was last written
  std::uintmax_t bytes = 0;                 // of its store
};

// The folders of `folder` that hold a run, oldest first. Links are left out.
std::vector<RunFolder> runs_in(const std::filesystem::path& folder);

// Totals of the kPastRuns runs beside this folder that were written last, oldest first. Runs that
// cannot be read are left out.
std::vector<RunTotals> runs_beside(const std::filesystem::path& folder);

// The last part of a folder's path: "night" for "runs/night/".
std::string folder_name(const std::filesystem::path& folder);

}  // namespace assay
