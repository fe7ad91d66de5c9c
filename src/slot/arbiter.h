#pragma once

// The arbiter: measures two results that are not alike against the truth, which the reference lane
// computes in float64.

#include <optional>

#include "base/result.h"
#include "slot/values.h"
#include "wire/messages_generated.h"

namespace assay {

using Evaluations = flatbuffers::Vector<flatbuffers::Offset<wire::Evaluation>>;

struct Truth {
  const Evaluations* evaluations = nullptr;  // the truth, then the truth with perturbed inputs
  LaneMemory memory;
  bool gradients = false;  // whether gradients are compared, or else outputs
  // Whether a jump with perturbed inputs excuses an element (measure/bar.h).
  bool jumps_excuse = true;
  bool exact_values = false;  // inputs are halves and small integers
};

// Distance of one leaf between both sides, in rounding errors (measure/bar.h).
Result<double> measure_apart(const wire::Leaf& test, const LaneMemory& test_memory,
                             const wire::Leaf& reference, const LaneMemory& reference_memory);

// Error bar of one leaf; null if the reference has no truth for it.
Result<flatbuffers::Offset<wire::Bar>> measure_against_truth(
    flatbuffers::FlatBufferBuilder& builder, const wire::Leaf& test, const LaneMemory& test_memory,
    const wire::Leaf& reference, const LaneMemory& reference_memory, const Truth& truth);

}  // namespace assay
