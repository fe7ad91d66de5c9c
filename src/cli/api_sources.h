#pragma once

// Where the cases of a run come from: flags, files, the standard input.

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/api_options.h"
#include "engine/run_config.h"

namespace assay {

// The entries of a comma-separated list, without blanks around them.
std::vector<std::string> entries_of(const std::string& text);

// What the flags name. A usage error if a case of --api_config is wrong, or if nothing is named.
Result<Sources> chosen_sources(const ApiOptions& options);

// The lane under test if no flag names one: PyTorch if the first case is a call of PyTorch's
// functions, else Paddle.
std::string usual_test_lane(const Sources& sources);

}  // namespace assay
