#pragma once

#include <string_view>

namespace assay {

// Property of a run: its known deviations (python/assay/known_deviation.py) as JSON,
// {API: [description, …]}. Reports count them. They are not a setting: runs with different known
// deviations can be compared.
inline constexpr std::string_view kKnownDeviations = "accommodations";

}  // namespace assay
