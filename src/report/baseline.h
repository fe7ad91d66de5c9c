#pragma once

// The baseline file: the known faults, as TOML under version control
// (docs/reference/files-and-formats.md).
//
// A fault without `cases` states no number: it may show in any number of cases, or in none. Values
// and dtypes that it does not list may be any. A file of such faults only is a list of known faults
// that people keep; assay ships some, generated from docs/findings.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/past.h"
#include "store/store.h"

namespace assay {

// Reads a baseline of version 2. A usage error for other files.
Result<PastRun> read_baseline(const std::filesystem::path& file);

struct WrittenBaseline {
  std::size_t faults = 0;
  std::vector<FaultKey> gone;  // faults of the old file that the run no longer shows
};

// Writes the faults of a run. Comments, reason, owner, upstream and until of faults that an
// existing file lists stay; faults of APIs that the run did not judge stay too. To a list of faults
// without `cases`, it adds new faults and value regimes only. A file that is no baseline is an
// error and stays as it is.
Result<WrittenBaseline> write_baseline(RunReader& run, const std::filesystem::path& file);

}  // namespace assay
