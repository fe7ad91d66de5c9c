#pragma once

#include <filesystem>

#include "base/result.h"
#include "store/store.h"

namespace assay {

// One page that needs nothing else: counts, findings, a table by API, and every failed or flagged
// case with its message and the command that runs it again. The reader can filter by outcome and
// text.
Status write_html_report(RunReader& run, const std::filesystem::path& file);

}  // namespace assay
