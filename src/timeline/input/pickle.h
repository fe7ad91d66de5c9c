#pragma once

// Reads the numbers, texts, lists, tuples and dictionaries of a Python pickle. Never calls
// anything: refuses a pickle that names a function or a class.

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/result.h"

namespace assay::timeline {

// Tuples become arrays and dictionary keys become texts.
Result<nlohmann::json> read_pickle(std::string_view bytes);

}  // namespace assay::timeline
