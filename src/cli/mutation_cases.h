#pragma once

// A few small cases of each API: those that `assay mutate` plants faults in, and those of
// `assay relations`.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/run_config.h"

namespace assay {

// Canonical texts of up to `each` cases of every API in these files. `seed` draws them from the
// cases of up to a few thousand elements; an API without such a case gets its smallest. Cases with
// an empty tensor and lines that do not parse are left out.
Result<std::vector<std::string>> choose_cases_of_apis(const std::vector<std::string>& patterns,
                                                      std::uint64_t seed, std::uint32_t each);

// Writes the cases to a file in the run's folder, which becomes its corpus.
Status use_cases(const std::vector<std::string>& cases, RunConfig& config);

}  // namespace assay
