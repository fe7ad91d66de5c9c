#pragma once

// Why some ranks compute longer than others in some steps: the work of their kernels, and what
// their hosts did.

#include <string>
#include <vector>

#include "timeline/analysis/analysis.h"
#include "timeline/analysis/culprits.h"
#include "timeline/analysis/host_activity.h"
#include "timeline/analysis/slice_steps.h"
#include "timeline/model.h"

namespace assay::timeline {

// How the kernels of some devices compare with the same ones of all, in some steps.
struct Compared {
  double time = 1;    // how many times longer they take than on the median device
  double work = 1;    // how many times more blocks they have, or bytes they copy
  std::string worst;  // the one with the largest excess
  Nanos excess = 0;   // of its calls together
};

class KernelComparison {
 public:
  KernelComparison(const Trace& trace, const Analysis& analysis);

  Compared compare(const Culprit& culprit) const;

  // What the host did in the longest wait of a device for it in the steps from `step` to `last`, or
  // empty: the shortest call or range that covers most of the wait.
  std::string host_in_gap(std::size_t device, std::size_t step, std::size_t last) const;

 private:
  double operations_of(const Culprit& culprit) const;

  const Trace& trace_;
  const Analysis& analysis_;
  SliceSteps steps_;
  HostActivity activity_;
};

}  // namespace assay::timeline
