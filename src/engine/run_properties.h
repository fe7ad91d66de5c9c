#pragma once

// What is kept with a run of how it was begun.

#include <map>
#include <string>

#include "engine/run_config.h"

namespace assay {

// What ids, inputs and verdicts depend on besides the cases: every field of the settings, the
// versions of what makes and judges them, the lanes. Kept with the run, which is resumed only with
// the same.
std::map<std::string, std::string> verdict_settings(const RunConfig& config);
// The same without the lanes, whose devices only those know who work.
std::map<std::string, std::string> case_settings(const RunConfig& config);

}  // namespace assay
