#pragma once

// What a GPU's counters say of kernels, where a trace has them: ranges of CUPTI's profiler, which
// PyTorch's can run instead of recording kernels, and what Inductor's analysis adds to a kernel's
// args.

#include <optional>

#include "timeline/importers/chrome_events.h"
#include "timeline/model.h"

namespace assay::timeline {

// Whether the event holds the counters of one kernel's call, and no time of its own: the profiler
// runs a kernel several times, and gives all ranges the same length.
bool counts_kernel(const ChromeEvent& event);

// The counters of such an event, or of a kernel's args; nothing where there are none.
std::optional<KernelCounters> counters_in(const ChromeEvent& event, Strings& strings);

}  // namespace assay::timeline
