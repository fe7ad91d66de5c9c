#pragma once

// The critical path of a step and what-if estimates. The path goes back from the step's last kernel
// through streams, launches and the ranks that collectives waited for; each link begins when its
// predecessor ends.

#include <map>
#include <string>
#include <vector>

#include "timeline/analysis/analysis.h"
#include "timeline/analysis/collectives.h"
#include "timeline/model.h"

namespace assay::timeline {

struct PathShare {
  std::string what;  // a kernel's name, "(host: launched late)", "(host: data loader)", "(device:
                     // held back)"
  Nanos time = 0;
};

struct CriticalPath {
  std::int64_t step = 0;
  Nanos length = 0;
  std::vector<PathShare> by_kernel;  // longest first
  std::vector<PathShare> by_rank;
};

// Sorts the sums, the longest first.
std::vector<PathShare> sorted_shares(const std::map<std::string, Nanos>& sums);

// The path through each step; empty without GPU work.
std::vector<CriticalPath> critical_paths(const Trace& trace, const Analysis& analysis,
                                         const CollectiveReport& collectives);

// Estimates of the mean step time with one change each; 0 where it does not apply.
struct WhatIf {
  Nanos step = 0;                  // measured
  Nanos free_communication = 0;    // without exposed communication
  Nanos slowest_rank_average = 0;  // the slowest rank computes as long as the mean
  Nanos ideal_bubble = 0;          // the bubble is the ideal bubble of the schedule
  Nanos prompt_host = 0;           // without idle time caused by the host
};

WhatIf what_if(const Analysis& analysis);

}  // namespace assay::timeline
