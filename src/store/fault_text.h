#pragma once

// The text in which a store keeps the faults of a case: one line for each fault.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "verdict/fault.h"

namespace assay {

// The lines of these faults; empty if there are none.
std::string faults_text(std::span<const Fault> faults);

// The faults that faults_text() wrote. An error if the text is damaged.
Result<std::vector<Fault>> parse_faults(std::string_view text);

}  // namespace assay
