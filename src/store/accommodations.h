#pragma once

#include <string_view>

namespace assay {

// A run's property: what the API tables accommodate (python/assay/accommodations.py), as JSON,
// {API: [in words, …]}. Reports count by it; it is no setting, and nothing is compared by it.
inline constexpr std::string_view kAccommodations = "accommodations";

}  // namespace assay
