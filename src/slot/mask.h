#pragma once

// Checks dropout's backward pass against its own forward pass: a gradient passes exactly where a
// value was kept.

#include "base/result.h"
#include "slot/compare.h"

namespace assay {

// Compares the masks of each gradient of `test` whose distribution is `kept`, like that of its
// output. Returns a comparison with the number of elements whose masks differ, for each gradient
// with such elements.
Result<Comparisons> compare_masks(flatbuffers::FlatBufferBuilder& builder, const wire::Reply& test,
                                  const LaneMemory& test_memory, const wire::Reply& reference);

}  // namespace assay
