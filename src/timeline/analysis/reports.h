#pragma once

// Parts of an analysis as text and JSON. A text is empty without its figures.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "timeline/analysis/flops.h"
#include "timeline/analysis/memory.h"
#include "timeline/analysis/replay.h"

namespace assay::timeline {

std::string flop_table(const FlopReport& report);
nlohmann::ordered_json flop_json(const FlopReport& report);

// The highest peaks, what they hold and who allocated it.
std::string memory_table(std::vector<MemoryPeak> peaks);
nlohmann::ordered_json memory_json(const std::vector<MemoryPeak>& peaks);

std::string replay_table(const Replay& replay);
nlohmann::ordered_json replay_json(const Replay& replay);

}  // namespace assay::timeline
