#pragma once

// Which cases of a corpus `assay mutate` plants faults in: a few small ones of each API.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay {

// Canonical texts, `each` of every API or as many as there are: by a draw of `seed` among those of
// a few thousand elements, and where there is none of them the smallest. Tensors without elements
// hold no fault; lines that do not parse are left to `assay corpus check`.
Result<std::vector<std::string>> choose_mutation_cases(const std::vector<std::string>& patterns,
                                                       std::uint64_t seed, std::uint32_t each);

}  // namespace assay
