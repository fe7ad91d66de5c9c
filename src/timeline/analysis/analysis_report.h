#pragma once

// Formats an analysis as a table or JSON.

#include <string>

#include "timeline/analysis/analysis.h"

namespace assay::timeline {

// With more devices, a table has their distribution, and the `top` that differ most.
inline constexpr std::size_t kMaxDevices = 16;
std::string analysis_table(const Analysis& analysis, std::size_t top = 10);
// `members` is the text of further members (insights_members()), or empty.
std::string analysis_json(const Analysis& analysis, const std::string& members = {});
// In milliseconds, from each step's begin to the next one's; 0 without steps.
double mean_step(const Analysis& analysis);
std::string schedule_line(const Analysis& analysis);

}  // namespace assay::timeline
