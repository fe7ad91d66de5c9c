#pragma once

// What a case might be made of that is smaller: fewer arguments, smaller and fewer extents, simpler
// numbers. Whether it still shows the fault is for a run to say.

#include <vector>

#include "shrink/tree.h"

namespace assay {

// Each lighter than the tree (weight_of); what takes most away comes first.
std::vector<CaseTree> smaller_cases(const CaseTree& tree);

}  // namespace assay
