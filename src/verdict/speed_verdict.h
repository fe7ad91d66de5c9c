#pragma once

// Judges the timings of two lanes.

#include "verdict/verdict.h"
#include "wire/messages_generated.h"

namespace assay {

// Sets the outcome to slow, fast, same or unsure. The message describes the first part of the case
// with that result.
void judge_speed(const wire::LaneRecord& test, const wire::LaneRecord& reference, double margin,
                 Verdict& verdict);

}  // namespace assay
