#pragma once

// What the timings of two lanes mean.

#include "verdict/verdict.h"
#include "wire/messages_generated.h"

namespace assay {

// slow, fast, same or unsure, with the first part of the case that is so in the message.
void judge_speed(const wire::LaneRecord& test, const wire::LaneRecord& reference, double margin,
                 Verdict& verdict);

}  // namespace assay
