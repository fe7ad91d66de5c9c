#pragma once

// What verdicts say to people, in parts.

#include <string>

#include "case/dtype.h"
#include "wire/messages_generated.h"

namespace assay {

// Empty for a string that is not there.
std::string text(const flatbuffers::String* string);

// What a lane raised, on one line, and where.
std::string lane_message(const wire::LaneRecord& lane);

// "float32[2, 3]", "integer 5", "nothing".
std::string side_text(const wire::Side* side);

// A number of a tensor of this dtype, with the digits that tell it from its neighbours. An integer
// is the sum of both numbers, a complex number has the second as its imaginary part.
std::string element_text(DType dtype, double value, double second = 0);

// How far both sides are from the truth.
std::string bar_text(const wire::Comparison& comparison);
// How two results differ, of which nobody knows the truth.
std::string difference_text(const wire::Comparison& comparison, bool same_wanted);

}  // namespace assay
