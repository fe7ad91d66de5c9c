#pragma once

// Dropout's backward against its own forward: a gradient passes exactly where a value was kept.

#include "base/result.h"
#include "slot/compare.h"

namespace assay {

// For each gradient of `test` whose law is that of its output, `kept`: a comparison that says how
// many elements had another mask in the backward than in the forward. Nothing where they agree.
Result<Comparisons> compare_masks(flatbuffers::FlatBufferBuilder& builder, const wire::Reply& test,
                                  const LaneMemory& test_memory, const wire::Reply& reference);

}  // namespace assay
