#pragma once

// The arbiter: two results that are not alike, measured against the truth that the reference lane
// gives beside its own.

#include <optional>

#include "base/result.h"
#include "slot/values.h"
#include "wire/messages_generated.h"

namespace assay {

using Evaluations = flatbuffers::Vector<flatbuffers::Offset<wire::Evaluation>>;

struct Truth {
  const Evaluations* evaluations = nullptr;  // the truth, then the truth under moved inputs
  LaneMemory memory;
  bool gradients = false;  // which of their results
  // Whether a jump under moved inputs excuses an element (measure/bar.h).
  bool jumps_excuse = true;
  bool exact_values = false;  // inputs are halves and small whole numbers
};

// One leaf of both sides by itself (measure/bar.h).
Result<double> measure_apart(const wire::Leaf& test, const LaneMemory& test_memory,
                             const wire::Leaf& reference, const LaneMemory& reference_memory);

// One leaf of both sides; null where the reference has no truth for it.
Result<flatbuffers::Offset<wire::Bar>> measure_against_truth(
    flatbuffers::FlatBufferBuilder& builder, const wire::Leaf& test, const LaneMemory& test_memory,
    const wire::Leaf& reference, const LaneMemory& reference_memory, const Truth& truth);

}  // namespace assay
