#pragma once

#include <filesystem>

#include "base/result.h"
#include "report/compare.h"
#include "store/store.h"

namespace assay {

inline constexpr std::uint64_t kFailuresOfPage = 20'000;

// Writes the page of `assay serve` as one self-contained file. It lists the first `most` cases of
// each failed outcome. `against`: the comparison with a past run or baseline; may be null.
Status write_report_page(RunReader& run, const std::filesystem::path& file,
                         const RunComparison* against, std::uint64_t most = kFailuresOfPage);

}  // namespace assay
