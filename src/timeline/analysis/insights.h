#pragma once

// Everything that an analysis reports beside the shares of time.

#include <map>
#include <string>
#include <vector>

#include "timeline/analysis/analysis.h"
#include "timeline/analysis/collectives.h"
#include "timeline/analysis/critical_path.h"
#include "timeline/analysis/culprits.h"
#include "timeline/analysis/flops.h"
#include "timeline/analysis/host_activity.h"
#include "timeline/analysis/kernels.h"
#include "timeline/analysis/memory.h"
#include "timeline/analysis/quality.h"
#include "timeline/analysis/queues.h"
#include "timeline/analysis/replay.h"
#include "timeline/analysis/serving_report.h"

namespace assay::timeline {

struct Insights {
  Quality quality;
  CollectiveReport collectives;
  std::vector<Culprit> culprits;
  std::vector<KernelRow> kernels;
  FlopReport flops;
  std::vector<MemoryPeak> memory;
  std::vector<CriticalPath> paths;  // by step
  Replay replay;
  std::vector<StreamQueue> queues;
  std::vector<HostShare> hosts;
  std::map<std::size_t, std::string> pauses;  // by step: what the host did meanwhile
  std::vector<ServingPhase> serving;
  std::string hang;  // hang_table()
};

// `peak`: TFLOP/s of a GPU; 0: of its data sheet.
Insights insights_of(const Trace& trace, const Analysis& analysis, double peak = 0);

// What a reader should know before any figure; empty for a trace without fault.
std::string quality_table(const Quality& quality);

// The answer: what hangs, who makes steps longer, and pauses; one line each.
std::string answer_table(const Analysis& analysis, const Insights& insights, std::size_t top = 10);
std::string culprit_line(const Culprit& one);

// The first rows of each table, `top` ranks; empty for a trace without such data.
std::string insights_table(const Insights& insights, std::size_t top = 10);

// The insights as members of a JSON object, without braces; `calls`: with each collective call.
std::string insights_members(const Insights& insights, bool calls = true);

}  // namespace assay::timeline
