#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "store/run_totals.h"

namespace assay {

// A run as a row of a table: {"name", "build", "last_ms", "duration_ms", "sampled", "outcomes"}.
nlohmann::json run_row(const RunTotals& run);

// Adds the history of a run to the data of its page. "runs": the rows of the runs with the mode,
// lanes and devices of `own`, and `own` itself, oldest first. Each finding gets "since": the oldest
// of the consecutive runs before `own` that also have its fault.
void put_history(const std::vector<RunTotals>& others, const RunTotals& own, nlohmann::json& page);

}  // namespace assay
