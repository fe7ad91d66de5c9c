#pragma once

// The faults of a case as a store keeps them: one line of text for each.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "verdict/fault.h"

namespace assay {

// Empty for no faults.
std::string faults_text(std::span<const Fault> faults);

// The faults that faults_text() wrote; an error where the text is damaged.
Result<std::vector<Fault>> parse_faults(std::string_view text);

}  // namespace assay
