#pragma once

// Compares two results leaf by leaf: structure, shape, dtype and values. Does not judge.

#include <limits>
#include <vector>

#include "base/result.h"
#include "measure/measurement.h"
#include "slot/arbiter.h"
#include "slot/values.h"
#include "wire/messages_generated.h"

namespace assay {

using Comparisons = std::vector<flatbuffers::Offset<wire::Comparison>>;

// The leaves of one lane's reply, and the memory that holds them.
struct Results {
  const flatbuffers::Vector<flatbuffers::Offset<wire::Leaf>>* leaves = nullptr;
  LaneMemory memory;
};

// A gradient that one framework leaves out counts as zeros.
enum class ResultRole { output, gradient };

// The findings of a first look, and the truth for a second one.
struct Look {
  bool by_bar = false;  // the error bar decides, also for numbers outside tensors
  const Truth* truth = nullptr;
  bool closer = false;                                             // results may have a second look
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();  // elements of such a result
  bool suspicious = false;  // some leaf differs at the first look
  double apart = 0;         // by how many rounding errors, where there was a second look
  bool wrong = false;       // some leaf is beyond the error bar, on either side
};

// The test lane's results are on the left, the reference lane's on the right. Leaves are paired by
// path; a leaf without a partner is compared with a missing side.
Result<Comparisons> compare(flatbuffers::FlatBufferBuilder& builder, const Results& left,
                            const Results& right, ResultRole role, Tolerance tolerance,
                            Look* look = nullptr);

}  // namespace assay
