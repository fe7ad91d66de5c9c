#pragma once

#include <string>

#include "case/case.h"

namespace assay {

// Appends the canonical text of one value.
void append_canonical(Value value, std::string& out);

}  // namespace assay
