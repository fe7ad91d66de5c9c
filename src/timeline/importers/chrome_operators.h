#pragma once

// Reads the operators of PyTorch's profiler that have a formula for their operations (shapes are
// recorded with record_shapes=True), and hardware counters of kernels. Counters come from ranges of
// CUPTI's profiler, which PyTorch's profiler can run in place of recording kernels, or from the
// args that Inductor's analysis adds to a kernel.

#include <string>
#include <unordered_map>

#include "timeline/importers/chrome_events.h"
#include "timeline/model.h"

namespace assay::timeline {

class OperatorReader {
 public:
  // The index into trace.operator_kinds; kNoIndex for other events.
  std::uint32_t kind_of(const ChromeEvent& event, Trace& trace);

 private:
  std::unordered_map<std::string, std::uint32_t> known_;  // by name and arguments
};

// Whether the event holds the counters of one kernel call. Its time is meaningless: the profiler
// runs a kernel several times and gives all ranges the same length.
bool counts_kernel(const ChromeEvent& event);

// Adds the counters in such an event or in a kernel's args, if any.
void add_counters(const ChromeEvent& event, Trace& trace);

}  // namespace assay::timeline
