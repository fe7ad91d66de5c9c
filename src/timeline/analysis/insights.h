#pragma once

// What an analysis tells beside the shares of time: collectives and stragglers, kernels, memory,
// the critical path, and what would be gained.

#include <string>
#include <vector>

#include "timeline/analysis/analysis.h"
#include "timeline/analysis/collectives.h"
#include "timeline/analysis/critical_path.h"
#include "timeline/analysis/kernels.h"
#include "timeline/analysis/memory.h"
#include "timeline/analysis/queues.h"

namespace assay::timeline {

struct Insights {
  CollectiveReport collectives;
  std::vector<KernelRow> kernels;
  std::vector<MemoryPeak> memory;
  std::vector<CriticalPath> paths;  // by step
  WhatIf what_if;
  std::vector<StreamQueue> queues;
  std::string hang;  // what flight recorder dumps tell, in words
};

Insights insights_of(const Trace& trace, const Analysis& analysis);

// The first lines of each table; empty for a trace without any of it.
std::string insights_table(const Insights& insights);

// All of it as the members of a JSON object, without its braces.
std::string insights_members(const Insights& insights);

// Kernels of two traces, the largest change first.
std::string kernel_comparison(const Insights& before, std::size_t steps_before,
                              const Insights& after, std::size_t steps_after);

}  // namespace assay::timeline
