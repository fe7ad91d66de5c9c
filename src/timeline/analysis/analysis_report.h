#pragma once

// An analysis as a table, as JSON, and two of them compared.

#include <string>

#include "timeline/analysis/analysis.h"

namespace assay::timeline {

std::string analysis_table(const Analysis& analysis);
// "version": 1. `members` is text that stands among the object's members (insights.h), or empty.
std::string analysis_json(const Analysis& analysis, const std::string& members = {});
// Mean time of a step, and each device's shares, before and after.
std::string comparison_table(const Analysis& before, const Analysis& after);

}  // namespace assay::timeline
