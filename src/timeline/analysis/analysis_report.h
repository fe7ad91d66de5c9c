#pragma once

// Formats an analysis as a table or JSON, and compares two analyses.

#include <string>

#include "timeline/analysis/analysis.h"

namespace assay::timeline {

std::string analysis_table(const Analysis& analysis);
// `members` is the text of further members (insights_members()), or empty.
std::string analysis_json(const Analysis& analysis, const std::string& members = {});
// The mean step time and each device's shares, before and after.
std::string comparison_table(const Analysis& before, const Analysis& after);

}  // namespace assay::timeline
