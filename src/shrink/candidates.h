#pragma once

// Proposes smaller variants of a case: fewer arguments, smaller and fewer extents, simpler numbers.
// A run decides whether a variant still fails.

#include <vector>

#include "shrink/tree.h"

namespace assay {

// Returns cases lighter than the tree (weight_of), the largest reductions first.
std::vector<CaseTree> smaller_cases(const CaseTree& tree);

}  // namespace assay
