#pragma once

// The data in a Python pickle, as far as it is data: numbers, texts, lists, tuples and
// dictionaries. Nothing is ever called: a pickle that asks for a function or a class is refused.

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/result.h"

namespace assay::timeline {

// Tuples become arrays, keys of dictionaries texts.
Result<nlohmann::json> read_pickle(std::string_view bytes);

}  // namespace assay::timeline
