#pragma once

// The results of `assay shrink` for a run: shrunk.json in the run's folder.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "base/result.h"
#include "verdict/judge.h"
#include "wire/frame.h"

namespace assay {

inline constexpr const char* kShrunkFile = "shrunk.json";
inline constexpr int kShrunkVersion = 1;

// The smallest case that still has the same failure.
struct ShrunkCase {
  std::uint64_t id = 0;
  std::string text;  // canonical
  Verdict verdict;
  wire::Bytes record;
  std::uint64_t tried = 0;  // number of cases that were tried
  bool whole = false;       // false: the budget ended the search
};

// The key is the id of the run's case.
using ShrunkCases = std::map<std::uint64_t, ShrunkCase>;

// The cases in the file; none if there is no file. An error for a file of another version.
Result<ShrunkCases> read_shrunk(const std::filesystem::path& folder);
// Adds cases to the file.
Status add_shrunk(const std::filesystem::path& folder, const ShrunkCases& shrunk);

}  // namespace assay
