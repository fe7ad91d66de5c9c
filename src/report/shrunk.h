#pragma once

// What `assay shrink` has made of the failures of a run: shrunk.json in the run's folder.

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

// The smallest case found that still shows the same failure.
struct ShrunkCase {
  std::uint64_t id = 0;
  std::string text;  // canonical
  Verdict verdict;
  wire::Bytes record;       // of its run
  std::uint64_t tried = 0;  // cases
  bool whole = false;       // nothing smaller is left to try; otherwise the budget was spent
};

// By the id of the case of the run.
using ShrunkCases = std::map<std::uint64_t, ShrunkCase>;

// Empty where there is no file. One of another version is an error.
Result<ShrunkCases> read_shrunk(const std::filesystem::path& folder);
// Adds these to what the file has.
Status add_shrunk(const std::filesystem::path& folder, const ShrunkCases& shrunk);

}  // namespace assay
