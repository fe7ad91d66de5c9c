#pragma once

// The critical path of a step. It goes back from the step's last kernel
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

}  // namespace assay::timeline
