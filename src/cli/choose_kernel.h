#pragma once

// The function of the user's own that a command line names (python/assay/kernel.py).

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/api_options.h"
#include "engine/run_config.h"

namespace assay {

// Looks at the kernel and its reference in the interpreter of the test lane, and tells both lanes
// what they have to know. Adds cases of other shapes if the options ask for them. A file or
// function that does not exist, a case that does not fit and a reference that raises are usage
// errors.
Status choose_kernel(const ApiOptions& options, RunConfig& config, std::vector<std::string>& notes);

}  // namespace assay
