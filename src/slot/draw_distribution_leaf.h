#pragma once

// Compares a random result with the distribution that the reference lane gives for it.

#include "base/result.h"
#include "slot/values.h"
#include "wire/messages_generated.h"

namespace assay {

// `drawn` is the test lane's tensor, `distribution` the reference lane's leaf of kind distribution.
// Both have the same shape.
Result<flatbuffers::Offset<wire::DrawMeasurement>> measure_draws(
    flatbuffers::FlatBufferBuilder& builder, const wire::Leaf& drawn,
    const LaneMemory& drawn_memory, const wire::Leaf& distribution,
    const wire::Arena& distribution_arena);

}  // namespace assay
