#pragma once

#include <string>

#include "base/result.h"
#include "report/past.h"

namespace assay {

// Reads a past run or a baseline. `where`: the folder of a run, the address of a database, or a
// baseline file. A usage error if it is none of these.
Result<PastRun> load_past(const std::string& where);

}  // namespace assay
