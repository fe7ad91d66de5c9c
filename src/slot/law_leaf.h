#pragma once

// A random result against the law that the reference lane gives for it.

#include "base/result.h"
#include "slot/values.h"
#include "wire/messages_generated.h"

namespace assay {

// `drawn` is the test lane's tensor, `law` the reference lane's leaf of kind law; their shapes are
// the same.
Result<flatbuffers::Offset<wire::LawMeasurement>> measure_law(
    flatbuffers::FlatBufferBuilder& builder, const wire::Leaf& drawn,
    const LaneMemory& drawn_memory, const wire::Leaf& law, const wire::Arena& law_arena);

}  // namespace assay
