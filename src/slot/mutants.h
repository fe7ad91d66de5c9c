#pragma once

// Chooses the faults to plant in a case, among those in the run's settings.

#include <cstdint>
#include <string>
#include <vector>

#include "wire/settings_generated.h"

namespace assay {

// Starts with "", the case without a fault, which is all in a real run. Seed, case and fault choose
// one in `mutants_share` faults.
std::vector<std::string> mutants_of(const wire::CaseSettingsT& settings, std::uint64_t id);

}  // namespace assay
