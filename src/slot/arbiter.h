#pragma once

// The arbiter: measures two results that are not alike against the truth, which the reference lane
// computes in float64.

#include <string_view>
#include <vector>

#include "base/result.h"
#include "measure/bar.h"
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

// The truth in a reply of the reference lane, as a trial under these values needs it.
Truth truth_of(const wire::Reply& reply, LaneMemory memory, std::string_view values,
               bool gradients);

// The settings of the error bar for this leaf of the reference, without values.
BarInput bar_of(const wire::Leaf& reference, const Truth& truth);

// Values of one leaf of the reference in every evaluation that has it, the truth first; those with
// perturbed inputs only if they count. Empty without truth. The values are in the form that the
// leaf's equality compares.
Result<std::vector<ComplexValues>> evaluated(const wire::Leaf& reference, const Truth& truth);

// Brings values into the form that the equality compares.
void put_in_form(ComplexValues& values, wire::Equality equality);

// Distance of one leaf between both sides, in rounding errors (measure/bar.h).
Result<double> measure_apart(const wire::Leaf& test, const LaneMemory& test_memory,
                             const wire::Leaf& reference, const LaneMemory& reference_memory);

// Error bar of one leaf; null if the reference has no truth for it.
Result<flatbuffers::Offset<wire::Bar>> measure_against_truth(
    flatbuffers::FlatBufferBuilder& builder, const wire::Leaf& test, const LaneMemory& test_memory,
    const wire::Leaf& reference, const LaneMemory& reference_memory, const Truth& truth);

}  // namespace assay
