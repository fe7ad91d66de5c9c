#pragma once

// What-if analysis by replay, as text and JSON.

#include <nlohmann/json.hpp>
#include <string>

#include "timeline/analysis/replay.h"

namespace assay::timeline {

// Empty without a replay.
std::string replay_table(const Replay& replay);
nlohmann::ordered_json replay_json(const Replay& replay);

}  // namespace assay::timeline
