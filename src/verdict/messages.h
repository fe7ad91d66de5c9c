#pragma once

// The parts of a verdict's message.

#include <string>

#include "case/dtype.h"
#include "wire/messages_generated.h"

namespace assay {

// The text of a string; empty if it is null.
std::string text(const flatbuffers::String* string);

// The lane's error on one line, with its phase unless that is "forward".
std::string lane_message(const wire::LaneRecord& lane);

// One side of a comparison: "float32[2, 3]", "integer 5", "nothing".
std::string side_text(const wire::Side* side);

// A number of a tensor of this dtype, with the digits that tell it from its neighbours. An integer
// is the sum of both numbers, a complex number has the second as its imaginary part.
std::string element_text(DType dtype, double value, double second = 0);

// How far both sides are from the truth.
std::string bar_text(const wire::Comparison& comparison);
// How two results differ, where the truth is unknown.
std::string difference_text(const wire::Comparison& comparison, bool same_wanted);

}  // namespace assay
