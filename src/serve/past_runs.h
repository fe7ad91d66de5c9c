#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "store/run_totals.h"

namespace assay {

// Adds the history of a run to the data of its page. "runs": the runs with the mode, lanes and
// devices of `own`, and `own` itself, oldest first: [{"name", "build", "last_ms", "duration_ms",
// "sampled", "outcomes"}, …]. Each finding gets "since": the oldest of the consecutive runs before
// `own` that also have its fault.
void put_history(const std::vector<RunTotals>& others, const RunTotals& own, nlohmann::json& page);

}  // namespace assay
