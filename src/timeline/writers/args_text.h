#pragma once

#include <string>

#include "timeline/model.h"

namespace assay::timeline {

// The args of a slice as a JSON object: as its file wrote them, else what of it is known. Empty,
// when there are none.
std::string args_text(const Trace& trace, const Slice& slice);

}  // namespace assay::timeline
