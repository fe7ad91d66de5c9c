#pragma once

// From flags and assay.toml to the configuration of a run.

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/api_options.h"
#include "engine/run_config.h"

namespace assay {

// The configuration that the flags of `assay plan` describe, without devices and lanes.
Result<RunConfig> make_plan_config(const ApiOptions& options, std::vector<std::string>& notes);
// The configuration that the flags and assay.toml describe. `notes` gets a line for each flag that
// has no effect and for each limit that this machine sets. A flag that cannot work here is a usage
// error.
Result<RunConfig> make_run_config(const ApiOptions& options, std::vector<std::string>& notes);

// A warning if FLAGS_check_nan_inf is set in the lane's environment; empty if it is not. Paddle
// then raises at NaN and infinity, which are right results under some value regimes.
std::string check_nan_inf_warning(const LaneConfig& lane);

}  // namespace assay
