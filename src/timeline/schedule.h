#pragma once

// Recognises the pipeline schedule of a step from the order of its jobs, and computes its ideal
// bubble: the bubble if every job took the mean time of its kind.
//
// Ideal bubble as time per stage, with P stages, M micro batches, V chunks a stage, and mean times
// F, B (input gradient) and W (weight gradient; 0 if B is not split):
//   GPipe, 1F1B   (P-1)(F+B)              Huang et al. 2019; Narayanan et al. 2021
//   interleaved   (P-1)(F+B)/V            Narayanan et al. 2021 (F, B of all chunks of a stage)
//   zero bubble   (P-1)(F+B-W) for ZB-H1  Qi et al. 2023; 0 for ZB-V (two chunks)
//   DualPipe      (P/2-1)(F&B+B+W-3W)     DeepSeek-AI 2024; F&B is the time of a pair that is
//                                         overlapped, F+B+W where none is; DualPipeV: P-1

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "timeline/model.h"

namespace assay::timeline {

enum class Pass : std::uint8_t { forward, backward, weight };

struct PipelineJob {
  Pass pass = Pass::forward;
  std::int32_t micro_batch = 0;
  std::int32_t chunk = 0;
  Nanos begin = 0;
  Nanos end = 0;
};
// The jobs of one step on one stage, ordered by begin.
using StageJobs = std::vector<PipelineJob>;

enum class ScheduleKind : std::uint8_t {
  none,
  unknown,
  gpipe,
  one_f_one_b,
  interleaved,
  zero_bubble,
  dualpipe
};
std::string_view name(ScheduleKind kind);

struct Schedule {
  ScheduleKind kind = ScheduleKind::none;
  std::size_t stages = 0;
  std::size_t pipelines = 1;  // side by side: data-parallel groups
  std::size_t micro_batches = 0;
  std::size_t chunks = 1;
  bool folded = false;         // DualPipeV: the first device also holds the last stage
  double ideal_bubble = 0;     // mean share of the pipeline's time in which a stage is idle
  double ideal_time = 0;       // ns of all jobs, with that bubble
  double measured_bubble = 0;  // the same as measured in this step
  std::string reason;          // why it is none or unknown, or the evidence
};

// Parses "forward", "backward", "backward_b" and "backward_w", each followed by the chunk's number.
// False for other types of job.
bool parse_job_type(std::string_view type, PipelineJob& job);

// `stages` are in the order of the pipeline.
Schedule recognise_schedule(std::span<const StageJobs> stages);

}  // namespace assay::timeline
