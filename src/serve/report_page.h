#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "report/compare.h"
#include "store/store.h"

namespace assay {

inline constexpr std::uint64_t kFailuresOfPage = 20'000;

// The page of `assay serve` in one file that needs nothing else, with what it shows of the run.
// `where` is the run's folder, beside which others are looked for; empty, or a database's address:
// none are shown. Of a database the first `most` failed cases of each outcome are in
// the page, and the other runs of the database. `against`: what the run is beside a past one, if
// it was compared.
Status write_report_page(RunReader& run, const std::string& where,
                         const std::filesystem::path& file, const RunComparison* against,
                         std::uint64_t most = kFailuresOfPage);

}  // namespace assay
