#pragma once

// The critical path of a step. It goes back from the step's last kernel
// through streams, launches and the ranks that collectives waited for; each link begins when its
// predecessor ends.

#include <string_view>
#include <vector>

#include "timeline/analysis/analysis.h"
#include "timeline/analysis/collectives.h"
#include "timeline/model.h"

namespace assay::timeline {

// A kernel's name, "(host: launched late)", a device's label. Valid as long as the trace and its
// analysis.
struct PathShare {
  std::string_view what;
  Nanos time = 0;
};

struct CriticalPath {
  std::int64_t step = 0;
  Nanos length = 0;
  std::vector<PathShare> by_kernel;  // longest first
  std::vector<PathShare> by_rank;
};

// The longest first, then by name.
void sort_shares(std::vector<PathShare>& shares);

// The path through each step; empty without GPU work.
std::vector<CriticalPath> critical_paths(const Trace& trace, const Analysis& analysis,
                                         const CollectiveReport& collectives);

}  // namespace assay::timeline
