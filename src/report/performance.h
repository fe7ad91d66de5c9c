#pragma once

// What a run that timed its cases came to, part by part: a table and a picture.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "store/store.h"

namespace assay {

// performance.csv in this folder: a line for each part of a case (forward, backward), clock and
// state of the caches, times in nanoseconds of a call.
Status write_performance(RunReader& run, const std::filesystem::path& folder);

// For the page: {"parts": how many there are, "rows": [{"case", "what", "test", "reference",
// "ratio": [low, middle, high], "told", "speed", "decides"}]}, the slowest first. Nothing of a run
// that timed nothing.
Result<nlohmann::json> performance_json(RunReader& run);

}  // namespace assay
