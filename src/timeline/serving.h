#pragma once

// Steps of inference servers, by the names of the ranges that they record around each forward of a
// batch.

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "timeline/model.h"

namespace assay::timeline {

// What a batch computes: the prompts of new requests (prefill), or one or several tokens of running
// ones (decode), or both. kNone: the trace does not tell.
struct ServingBatch {
  static constexpr std::string_view kPrefill = "prefill";
  static constexpr std::string_view kDecode = "decode";
  static constexpr std::string_view kMixed = "prefill and decode";
  static constexpr std::string_view kUnknown = "not told apart";

  std::string_view phase = kUnknown;
  std::int64_t requests = kNone;
  std::int64_t prefill_tokens = kNone;
  std::int64_t decode_tokens = kNone;
  friend auto operator<=>(const ServingBatch&, const ServingBatch&) = default;

  // Whether an equal batch is as much work.
  bool sized() const { return requests != kNone && prefill_tokens != kNone; }
};

// Parses the ranges of vLLM ("execute_context_2(6144)_generation_3(3)", "execute_new_2_cached_3"),
// SGLang ("step[EXTEND bs=2 toks=6144]"), ATOM ("decode[bs=3 tok=3]") and TensorRT-LLM
// ("_forward_step 7: 2 ctx reqs, 3 gen reqs"). A name that does not tell decoded tokens stands for
// one of each request.
std::optional<ServingBatch> parse_serving_batch(std::string_view name);

// Parses what runs a batch in traces without such ranges, and tells no sizes: vLLM's range
// "gpu_model_runner: forward" and the Python frames "…/gpu_model_runner.py(3200): execute_model",
// "…/model_runner.py(9): forward_extend", "…/cuda_graph_runner.py(9): replay".
std::optional<ServingBatch> parse_serving_frame(std::string_view name);

// Whether an importer keeps a Python frame, however short, for serving_steps().
bool is_serving_frame(std::string_view name);

struct ServingStep {
  RankStep mark;  // numbered from 0 in each source
  ServingBatch batch;
};

// By source and begin. A range within another one is the same step. Frames count only in a trace
// without ranges. Attention kernels tell phases that names do not tell, where they are sure.
std::vector<ServingStep> serving_steps(const Trace& trace);

// What the steps of the trace compute, by number; empty if they are no steps of a server. All ranks
// of a server compute the same batch.
std::map<std::int64_t, ServingBatch> serving_batches(const Trace& trace);

}  // namespace assay::timeline
