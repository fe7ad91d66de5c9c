#pragma once

// Reduces failures of a stored run to small cases, all in one session of the engine.

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
  std::string values;  // value regimes under which the failures show, in the format of CaseSettings
};

// Plans a search for each of these cases of the run. A case that did not fail is a usage error.
Result<ShrinkJob> plan_shrink(RunReader& run, const std::vector<std::uint64_t>& ids,
                              const ShrinkLimits& limits);

// Runs the searches with the settings of their run, in a temporary folder, until they are done or
// the time is over. Returns the smallest cases by the id of the failure. Failures that did not
// reproduce are left out.
Result<ShrunkCases> run_shrink(RunConfig config, ShrinkJob& job, std::chrono::nanoseconds budget,
                               const RunObserver& observer);

}  // namespace assay
