#pragma once

// Reads hardware counters of kernels. They come from ranges of CUPTI's profiler, which PyTorch's
// profiler can run in place of recording kernels, or from the args that Inductor's analysis adds to
// a kernel.

#include "timeline/importers/chrome_events.h"
#include "timeline/model.h"

namespace assay::timeline {

// Whether the event holds the counters of one kernel call. Its time is meaningless: the profiler
// runs a kernel several times and gives all ranges the same length.
bool counts_kernel(const ChromeEvent& event);

// Adds the counters in such an event or in a kernel's args, if any.
void add_counters(const ChromeEvent& event, Trace& trace);

}  // namespace assay::timeline
