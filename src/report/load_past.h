#pragma once

#include <string>

#include "base/result.h"
#include "report/past.h"

namespace assay {

// Reads what is known before a run. `where` is the folder of a run, the address of a database, or a
// baseline file.
Result<PastRun> load_past(const std::string& where);

}  // namespace assay
