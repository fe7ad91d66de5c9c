#pragma once

// Reads the operators of PyTorch's profiler that have a formula for their operations. Shapes are
// recorded with record_shapes=True.

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

}  // namespace assay::timeline
