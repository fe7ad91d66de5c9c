#pragma once

// Steps of inference servers, by the names of the ranges that they record around each forward of a
// batch.

#include <optional>
#include <string_view>
#include <vector>

#include "timeline/model.h"

namespace assay::timeline {

// Parses the ranges of vLLM ("execute_context_2(6144)_generation_3(3)", "execute_new_2_cached_3"),
// SGLang ("step[EXTEND bs=2 toks=6144]"), ATOM ("decode[bs=3 tok=3]") and TensorRT-LLM
// ("_forward_step 7: 2 ctx reqs, 3 gen reqs"). A name that does not tell decoded tokens stands for
// one of each request.
std::optional<ServingBatch> parse_serving_batch(std::string_view name);

// Whether an importer keeps a Python frame, however short, for serving_steps().
bool is_serving_frame(std::string_view name);

struct ServingStep {
  RankStep mark;  // numbered from 0 in each source
  ServingBatch batch;
};

// By source and begin. A range within another one is the same step. Frames count only in a trace
// without ranges. Attention kernels tell phases that names do not tell, where they are sure.
std::vector<ServingStep> serving_steps(const Trace& trace);

}  // namespace assay::timeline
