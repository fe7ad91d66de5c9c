#pragma once

// Derives pipeline jobs from named ranges: user annotations of PyTorch's profiler and NVTX ranges.
// The GPU time of a job is the time of the kernels launched within its range.

#include "timeline/analysis/job_names.h"
#include "timeline/model.h"

namespace assay::timeline {

// Adds a track of jobs for each device with work launched within such ranges.
void add_annotated_jobs(Trace& trace, const JobNames& names);

}  // namespace assay::timeline
