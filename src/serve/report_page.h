#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "store/store.h"

namespace assay {

// The page of `assay serve` in one file that needs nothing else, with what it shows of the run.
// `where` is the run's folder, beside which others are looked for; empty, or a database's address:
// none are shown.
Status write_report_page(RunReader& run, const std::string& where,
                         const std::filesystem::path& file);

}  // namespace assay
