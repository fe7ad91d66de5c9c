#pragma once

// What a step's time hangs on: the chain of work, back from its last kernel, of which each link
// began when the one before it ended, through streams, launches and the ranks that a collective
// waited for. And what a step would take if one thing were different.

#include <map>
#include <string>
#include <vector>

#include "timeline/analysis/analysis.h"
#include "timeline/analysis/collectives.h"
#include "timeline/model.h"

namespace assay::timeline {

struct PathShare {
  std::string what;  // a kernel's name, "(host: launched late)", "(device: held back)"
  Nanos time = 0;
};

struct CriticalPath {
  std::int64_t step = 0;
  Nanos length = 0;
  std::vector<PathShare> by_kernel;  // most time first
  std::vector<PathShare> by_rank;
};

// The path through each step; empty where the trace has no GPU work.
std::vector<CriticalPath> critical_paths(const Trace& trace, const Analysis& analysis,
                                         const CollectiveReport& collectives);

// Estimates of a mean step, each with one thing changed; 0 where it makes no sense.
struct WhatIf {
  Nanos step = 0;                  // as it is
  Nanos free_communication = 0;    // without the communication that nothing hides
  Nanos slowest_rank_average = 0;  // if the rank that computes longest computed as long as the mean
  Nanos ideal_bubble = 0;          // if the pipeline's bubble were what its schedule costs
  Nanos prompt_host = 0;           // without idle time that late launches cost
};

WhatIf what_if(const Analysis& analysis);

}  // namespace assay::timeline
