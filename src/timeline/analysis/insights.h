#pragma once

// Everything that an analysis reports beside the shares of time.

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
  std::string hang;  // hang_table()
};

Insights insights_of(const Trace& trace, const Analysis& analysis);

// The first rows of each table; empty for a trace without such data.
std::string insights_table(const Insights& insights);

// The insights as members of a JSON object, without braces.
std::string insights_members(const Insights& insights);

// A table of the kernels of two traces, the largest change first.
std::string kernel_comparison(const Insights& before, std::size_t steps_before,
                              const Insights& after, std::size_t steps_after);

}  // namespace assay::timeline
