#pragma once

// The timings of a run, part by part: a table and a picture.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "store/store.h"

namespace assay {

// Writes performance.csv in this folder: a line for each part of a case (forward, backward), clock
// and state of the caches, with times in nanoseconds per call.
Status write_performance(RunReader& run, const std::filesystem::path& folder);

// The timings for the page: {"parts": N, "rows": [{"case", "what", "test", "reference", "ratio":
// [low, middle, high], "told", "speed", "decides"}]}, the slowest first. Null if the run timed
// nothing.
Result<nlohmann::json> performance_json(RunReader& run);

}  // namespace assay
