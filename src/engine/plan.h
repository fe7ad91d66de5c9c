#pragma once

// From corpus text to planned cases: parse, drop duplicates, resume.

#include <cstddef>
#include <functional>
#include <vector>

#include "engine/run_config.h"
#include "store/store.h"
#include "wire/job.h"

namespace assay {

struct Plan {
  Totals totals;
  std::vector<InvalidLine> first_invalid;  // some, to show at once; the store has all
};

// Writes every case to the store without a commit. Lines that do not parse are stored as invalid
// and counted. Calls `has_work` once, before the first case to run, or at once if the run has
// results already.
Result<Plan> make_plan(const RunConfig& config, Store& store,
                       const std::function<Status()>& has_work = {});

// Claims unfinished cases, and hands each to `take` with its limits.
Result<Supply> claim_cases(const RunConfig& config, std::size_t bundles, RunClaims& claims,
                           const std::function<void(wire::JobT)>& take);

}  // namespace assay
