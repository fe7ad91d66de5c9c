#pragma once

// What the flags of `assay api` and assay.toml come to: the configuration of a run.

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/api_options.h"
#include "engine/run_config.h"

namespace assay {

// What the flags of `assay plan` ask for; where it runs is left out.
Result<RunConfig> make_plan_config(const ApiOptions& options, std::vector<std::string>& notes);
// What the flags and assay.toml ask for. `notes` gets a line for everything that has no effect
// here. A flag whose feature does not exist yet is a usage error.
Result<RunConfig> make_run_config(const ApiOptions& options, std::vector<std::string>& notes);

}  // namespace assay
