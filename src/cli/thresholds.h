#pragma once

// engineV4's file of tolerances for single APIs:
//
//   manual_threshold_config:
//     paddle.exp: [0.1, 0.01]      # atol, rtol; a custom operator has its own name
//
// Other keys are ignored, as engineV4 does.

#include <string>

#include "base/result.h"

namespace assay {

// The tolerances in the format of CaseSettings.thresholds; empty for an empty path. A usage error
// if the file cannot be read, has no such table, or an entry is not two numbers of at least 0.
Result<std::string> read_thresholds(const std::string& path);

}  // namespace assay
