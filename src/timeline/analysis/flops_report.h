#pragma once

// The report on operations as text and JSON.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "timeline/analysis/flops.h"

namespace assay::timeline {

// Empty for a trace without operators that have a formula.
std::string flop_table(const FlopReport& report);
nlohmann::ordered_json flop_json(const FlopReport& report);

}  // namespace assay::timeline
