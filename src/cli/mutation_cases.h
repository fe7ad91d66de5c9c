#pragma once

// The cases that `assay mutate` plants faults in: a few small ones of each API.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay {

// Canonical texts of up to `each` cases of every API in these files. `seed` draws them from the
// cases of up to a few thousand elements; an API without such a case gets its smallest. Cases with
// an empty tensor and lines that do not parse are left out.
Result<std::vector<std::string>> choose_mutation_cases(const std::vector<std::string>& patterns,
                                                       std::uint64_t seed, std::uint32_t each);

}  // namespace assay
