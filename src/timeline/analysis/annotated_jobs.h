#pragma once

// Pipeline jobs of programs that name their ranges: user annotations of PyTorch's profiler and NVTX
// ranges, whose GPU time is that of the kernels that they launched.

#include <filesystem>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "timeline/model.h"
#include "timeline/schedule.h"

namespace assay::timeline {

struct JobName {
  Pass pass = Pass::forward;
  bool split = false;                // a backward without its weights' gradients
  std::int32_t micro_batch = kNone;  // as the name says it
  std::int32_t stage = kNone;        // of the pipeline, or the chunk of a stage
};

// Names that are known: "F", "B3", "W0.1" (zero bubble), "mlp(B)" (DualPipe), "Forward_3",
// "forward_step" (Megatron), "_exec_forward_pass" (DeepSpeed), "PP:2F0", "Forward 0"
// (torch.distributed.pipelining). Or those of a file: lines of a pass (forward, backward, weight)
// and a regular expression for the whole name, whose groups are the micro batch and the chunk.
class JobNames {
 public:
  static Result<JobNames> read(const std::filesystem::path& path);
  std::optional<JobName> parse(std::string_view name) const;

 private:
  struct Rule {
    Pass pass;
    std::regex pattern;
  };
  std::vector<Rule> rules_;
};

// Adds a track of jobs for each device whose work was launched within named ranges.
void add_annotated_jobs(Trace& trace, const JobNames& names);

}  // namespace assay::timeline
