#pragma once

// The verdict of a case whose lanes did not all give a result.

#include "verdict/verdict.h"
#include "wire/shared.h"

namespace assay {

// Whether the lane's call raised an error, not one that a sanitizer found.
bool raised(const wire::LaneRecord& lane);

// Sets the verdict if the states of the lanes decide it, and returns whether they do. The test lane
// comes first, so that a reference without a kernel does not hide a crash of the test lane.
bool decided_by_lanes(const wire::Trial& trial, Verdict& verdict);

}  // namespace assay
