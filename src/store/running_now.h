#pragma once

// What a run works on at this moment, in a file of its folder: `assay serve` shows it. The file is
// written about once a second and is never synced to the disk, because it is of no use later.

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay {

struct RunningCase {
  std::string text;
  double seconds = 0;  // since it began
};

// Replaces the file in this folder.
Status write_running(const std::filesystem::path& folder, const std::vector<RunningCase>& cases);
void remove_running(const std::filesystem::path& folder);

// The cases of the file, longest first. Empty if there is none, if it is older than 10 s because
// its run was killed, or if it is not what write_running() writes.
std::vector<RunningCase> read_running(const std::filesystem::path& folder);

}  // namespace assay
