#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "store/run_totals.h"

namespace assay {

// The runs of the same mode as `own`, and `own` itself, oldest first: [{"name", "build", "last_ms",
// "sampled", "outcomes"}, …]. "build" names frameworks, devices and the assay of the run.
nlohmann::json runs_json(const std::vector<RunTotals>& others, const RunTotals& own);

}  // namespace assay
