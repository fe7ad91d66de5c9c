#pragma once

// Pipeline jobs of programs that name their ranges: user annotations of PyTorch's profiler and NVTX
// ranges, whose GPU time is that of the kernels that they launched.

#include "timeline/analysis/job_names.h"
#include "timeline/model.h"

namespace assay::timeline {

// Adds a track of jobs for each device whose work was launched within named ranges.
void add_annotated_jobs(Trace& trace, const JobNames& names);

}  // namespace assay::timeline
