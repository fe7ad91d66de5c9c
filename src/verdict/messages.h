#pragma once

// The parts of a verdict's message.

#include <string>

#include "wire/messages_generated.h"

namespace assay {

// The text of a string; empty if it is null.
std::string text(const flatbuffers::String* string);

// The lane's error on one line, with its phase unless that is "forward".
std::string lane_message(const wire::LaneRecord& lane);

// One side of a comparison: "float32[2, 3]", "integer 5", "nothing".
std::string side_text(const wire::Side* side);

// How far both sides are from the truth.
std::string bar_text(const wire::Bar& bar, const wire::Measurement& measured);
// How two results differ, if there is no truth to compare them with. `same_wanted`: elements with
// different bits count as different, otherwise those beyond the tolerance.
std::string difference_text(const wire::Measurement& measured, bool same_wanted);

}  // namespace assay
