#pragma once

// Parts of an analysis as text and JSON. A text is empty without its figures.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "timeline/analysis/analysis.h"
#include "timeline/analysis/flops.h"
#include "timeline/analysis/memory.h"
#include "timeline/analysis/replay.h"

namespace assay::timeline {

// With more devices, a table has their distribution, and the `top` that differ most.
inline constexpr std::size_t kMaxDevices = 16;
std::string analysis_table(const Analysis& analysis, std::size_t top = 10);
// `members` is the text of further members (insights_members()), or empty.
std::string analysis_json(const Analysis& analysis, const std::string& members = {});
// In milliseconds, from each step's begin to the next one's; 0 without steps.
double mean_step(const Analysis& analysis);
std::string schedule_line(const Analysis& analysis);

std::string flop_table(const FlopReport& report);
nlohmann::ordered_json flop_json(const FlopReport& report);

// The highest peaks, what they hold and who allocated it.
std::string memory_table(std::vector<MemoryPeak> peaks);
nlohmann::ordered_json memory_json(const std::vector<MemoryPeak>& peaks);

std::string replay_table(const Replay& replay);
nlohmann::ordered_json replay_json(const Replay& replay);

}  // namespace assay::timeline
