#pragma once

// Inference: what the steps of a server compute, by phase.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "timeline/analysis/analysis.h"
#include "timeline/analysis/kernels.h"
#include "timeline/model.h"

namespace assay::timeline {

// The steps of one phase of ServingBatch. kNone: a step does not tell.
struct ServingPhase {
  std::string name;
  std::size_t steps = 0;
  std::int64_t requests = 0;
  std::int64_t prefill_tokens = 0;
  std::int64_t decode_tokens = 0;
  Nanos time = 0;     // until the next step begins
  Nanos busy = 0;     // of a mean GPU
  Nanos waiting = 0;  // of a mean GPU, for the host
  std::size_t kernels = 0;
  std::size_t of_graphs = 0;  // of the kernels, launched by a graph
};

// Empty without steps of a server.
std::vector<ServingPhase> serving_phases(const Trace& trace, const Analysis& analysis);
// How to tell the batches of a server apart, where the trace does not; empty for other traces.
std::string serving_advice(const std::vector<ServingPhase>& phases,
                           const std::vector<KernelRow>& kernels);
std::string serving_table(const std::vector<ServingPhase>& phases);
nlohmann::ordered_json serving_json(const std::vector<ServingPhase>& phases);

}  // namespace assay::timeline
