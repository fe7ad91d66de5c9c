#pragma once

// Compares a random result with the distribution that the reference lane gives for it.

#include "base/result.h"
#include "slot/values.h"
#include "wire/messages_generated.h"

namespace assay {

// `drawn` is the test lane's tensor, `law` the reference lane's leaf of kind law. Both have the
// same shape.
Result<flatbuffers::Offset<wire::LawMeasurement>> measure_law(
    flatbuffers::FlatBufferBuilder& builder, const wire::Leaf& drawn,
    const LaneMemory& drawn_memory, const wire::Leaf& law, const wire::Arena& law_arena);

}  // namespace assay
