#pragma once

// Faults to plant: which of those that a run's settings name a case gets.

#include <cstdint>
#include <string>
#include <vector>

#include "wire/settings_generated.h"

namespace assay {

// The case without a fault first, as "", and nothing else in a real run. Of the faults one in
// `mutants_share` is chosen, by seed, case and fault.
std::vector<std::string> mutants_of(const wire::CaseSettingsT& settings, std::uint64_t id);

}  // namespace assay
