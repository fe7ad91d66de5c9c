#pragma once

// Two results, leaf by leaf: what differs in structure, shape, dtype and value. Nothing is judged.

#include <vector>

#include "base/result.h"
#include "measure/measurement.h"
#include "slot/arbiter.h"
#include "slot/values.h"
#include "wire/messages_generated.h"

namespace assay {

using Comparisons = std::vector<flatbuffers::Offset<wire::Comparison>>;

// The leaves of one lane's reply, and where they lie.
struct Results {
  const flatbuffers::Vector<flatbuffers::Offset<wire::Leaf>>* leaves = nullptr;
  LaneMemory memory;
};

// A gradient that one framework leaves out counts as zeros.
enum class ResultRole { output, gradient };

// What a comparison shows at once, and the truth for a second look.
struct Look {
  bool by_bar = false;  // results are judged by the error bar, numbers outside tensors as well
  const Truth* truth = nullptr;
  bool closer = false;      // the case is small enough for a second look
  bool suspicious = false;  // some leaf is not alike at the first look
  bool wrong = false;       // some leaf is beyond the error bar, on either side
};

// Test lane's results on the left, reference lane's on the right. Leaves are paired by their path;
// one without a partner is compared with a missing side.
Result<Comparisons> compare(flatbuffers::FlatBufferBuilder& builder, const Results& left,
                            const Results& right, ResultRole role, Tolerance tolerance,
                            Look* look = nullptr);

}  // namespace assay
