#pragma once

// Reads what was known before a run, wherever it is kept.

#include <string>

#include "base/result.h"
#include "report/past.h"

namespace assay {

// `where` is the folder of a run, the address of a database, or a baseline file.
Result<PastRun> load_past(const std::string& where);

// What came of the cases of a past run in a database, one by one.
Status load_cases(PastRun& past);

}  // namespace assay
