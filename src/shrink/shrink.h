#pragma once

// Failures of a stored run made small: searches for all of them, in one session of the engine.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "report/rejudge.h"
#include "report/shrunk.h"
#include "shrink/search.h"
#include "store/store.h"

namespace assay {

struct ShrinkJob {
  std::vector<ShrinkSearch> searches;
  std::string values;  // kinds of values under which the failures show, as CaseSettings has them
};

// A search for each of these cases of the run. One that did not fail is a usage error.
Result<ShrinkJob> plan_shrink(RunReader& run, const std::vector<std::uint64_t>& ids,
                              const ShrinkLimits& limits);

// Runs the searches, with the settings of their run, until they are done or the time is over, in a
// folder of its own that goes afterwards. Gives what was found, by the id of the failure; a failure
// that did not come again is not among it.
Result<ShrunkCases> run_shrink(RunConfig config, ShrinkJob& job, std::chrono::nanoseconds budget,
                               const RunObserver& observer);

}  // namespace assay
