#pragma once

// The peaks of memory as text and JSON.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "timeline/analysis/memory.h"

namespace assay::timeline {

// The highest peaks, what they hold and who allocated it; empty without memory events.
std::string memory_table(std::vector<MemoryPeak> peaks);
nlohmann::ordered_json memory_json(const std::vector<MemoryPeak>& peaks);

}  // namespace assay::timeline
