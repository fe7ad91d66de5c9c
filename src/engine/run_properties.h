#pragma once

// Properties that a run keeps about its start.

#include <map>
#include <string>

#include "engine/run_config.h"

namespace assay {

// All that ids, inputs and verdicts depend on besides the cases: the settings, the versions of
// their makers and judges, the lanes. A run is resumed only with the same.
std::map<std::string, std::string> verdict_settings(const RunConfig& config);
// The same without the lanes, whose devices are known only to the workers.
std::map<std::string, std::string> case_settings(const RunConfig& config);

}  // namespace assay
