#pragma once

// Who takes longer than its peers, and in which steps.

#include <cstddef>
#include <utility>
#include <vector>

#include "timeline/model.h"

namespace assay::timeline {

using Series = std::vector<Nanos>;  // by step

// Steps in which one of the peers takes longer than the others.
struct Excess {
  Nanos size = 0;  // mean over the steps
  std::vector<std::size_t> steps;
  bool lasting = false;  // a third of all steps or more, end to end
};

Excess excess_in(const Series& excess, std::vector<std::size_t> steps, bool lasting);

// By step, the median of the steps of its kind.
Series usual_of(const Series& times, const std::vector<std::size_t>& kinds);

// Finds those of the peers that stand out: by a thirtieth of a step (a tenth in single steps), and
// by far more than the others differ among themselves. A single peer is compared with its own
// median over the steps of one kind.
std::vector<std::pair<std::size_t, Excess>> outliers(const std::vector<Series>& peers, Nanos step,
                                                     const std::vector<std::size_t>& kinds);

}  // namespace assay::timeline
