#pragma once

// Recognises pipeline jobs by the names of their ranges.

#include <filesystem>
#include <regex>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "timeline/schedule.h"

namespace assay::timeline {

struct JobName {
  Pass pass = Pass::forward;
  bool split = false;                // a backward without the gradients of weights
  std::int32_t micro_batch = kNone;  // in the name
  std::int32_t stage = kNone;        // of the pipeline, or the chunk of a stage
};

// Known names: "F", "B3", "W0.1" (zero bubble), "mlp(B)" (DualPipe), "Forward_3",
// "forward_step" (Megatron), "_exec_forward_pass" (DeepSpeed), "PP:2F0", "Forward 0"
// (torch.distributed.pipelining), and of overlapped passes "(0F1;1B0)OVERLAP_F_B", "F1&B0",
// "overlapped_forward_backward". A file (read()) replaces them: each line is a pass (forward,
// backward, weight) and a regular expression for the whole name, whose groups are the micro batch
// and the chunk.
class JobNames {
 public:
  static Result<JobNames> read(const std::filesystem::path& path);
  // Empty for other names; a forward and a backward for overlapped passes.
  std::vector<JobName> parse(std::string_view name) const;

 private:
  struct Rule {
    Pass pass;
    std::regex pattern;
  };
  std::vector<Rule> rules_;
};

// Derives pipeline jobs from named ranges: user annotations of PyTorch's profiler and NVTX ranges.
// The GPU time of a job is the time of the kernels launched within its range. Adds a track of jobs
// for each device with work launched within such ranges.
void add_annotated_jobs(Trace& trace, const JobNames& names);

}  // namespace assay::timeline
