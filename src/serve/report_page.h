#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "report/compare.h"
#include "store/store.h"

namespace assay {

inline constexpr std::uint64_t kFailuresOfPage = 20'000;

// Writes the page of `assay serve` as one file that needs nothing else. It lists the first `most`
// cases of each failed outcome. `against`: the run beside what is known, if it was compared.
Status write_report_page(RunReader& run, const std::filesystem::path& file,
                         const RunComparison* against, std::uint64_t most = kFailuresOfPage);

}  // namespace assay
