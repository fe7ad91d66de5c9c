#pragma once

// Work of processes without a GPU: their operators and the collectives of gloo, MPI and UCC.

#include <string_view>

#include "timeline/model.h"

namespace assay::timeline {

inline constexpr std::string_view kCpuLabel = "CPU";
// Whether a device's label is of such a track. No host launches its work.
inline bool is_cpu(std::string_view label) {
  return label.find(kCpuLabel) != std::string_view::npos;
}

// Adds a track "CPU" to each process that has operators and no GPU track. Outermost operators
// compute; an operator that only enqueues a collective is left out, and the collective itself
// communicates. A collective without a group gets that of its process if there is only one.
void add_cpu_work(Trace& trace);

}  // namespace assay::timeline
