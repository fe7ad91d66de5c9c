#pragma once

// What verdicts say to people, in parts.

#include <string>

#include "wire/messages_generated.h"

namespace assay {

// Empty for a string that is not there.
std::string text(const flatbuffers::String* string);

// What a lane raised, on one line, and where.
std::string lane_message(const wire::LaneRecord& lane);

// "float32[2, 3]", "integer 5", "nothing".
std::string side_text(const wire::Side* side);

// How far both sides are from the truth.
std::string bar_text(const wire::Bar& bar, const wire::Measurement& measured);
// How two results differ, of which nobody knows the truth.
std::string difference_text(const wire::Measurement& measured, bool same_wanted);

}  // namespace assay
