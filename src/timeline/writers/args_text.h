#pragma once

#include <string>

#include "timeline/model.h"

namespace assay::timeline {

// The args of a slice as a JSON object: the text of its file, else its known properties. Empty
// without either.
std::string args_text(const Trace& trace, const Slice& slice);

}  // namespace assay::timeline
