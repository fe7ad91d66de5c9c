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

// What a batch computes: the prompts of new requests (prefill), and one or several tokens of
// running ones (decode).
struct ServingBatch {
  std::int64_t prefills = 0;  // requests
  std::int64_t prefill_tokens = 0;
  std::int64_t decodes = 0;
  std::int64_t decode_tokens = 0;
  friend auto operator<=>(const ServingBatch&, const ServingBatch&) = default;

  std::string_view phase() const {
    return prefills == 0 ? "decode" : decodes == 0 ? "prefill" : "prefill and decode";
  }
};

// Parses the names of vLLM ("execute_context_2(6144)_generation_3(3)", "execute_new_2_cached_3"),
// SGLang
// ("step[EXTEND bs=2 toks=6144]") and ATOM ("decode[bs=3 tok=3]"). Tokens that a name does not tell
// are 0 for prompts, and one for each decoding request.
std::optional<ServingBatch> parse_serving_batch(std::string_view name);

struct ServingStep {
  RankStep mark;  // numbered from 0 in each source
  ServingBatch batch;
};

// By source and begin. A range within another one is the same step.
std::vector<ServingStep> serving_steps(const Trace& trace);

// What the steps of the trace compute, by number; empty if they are no steps of a server. All ranks
// of a server compute the same batch.
std::map<std::int64_t, ServingBatch> serving_batches(const Trace& trace);

}  // namespace assay::timeline
