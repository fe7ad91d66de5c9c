#pragma once

// Asks python/assay/scripts for scripts and texts for people.

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/result.h"
#include "lane/fork_server.h"

namespace assay {

// An answer for each request, in their order: an object, whose "error" is a text if there is no
// other. One Python writes them all; it needs no framework.
Result<std::vector<nlohmann::json>> ask_scripts(const FrameworkConfig& python,
                                                const std::vector<nlohmann::json>& requests);
// The same by a Python that this machine has: `framework`'s, or any.
Result<std::vector<nlohmann::json>> ask_scripts(const std::vector<nlohmann::json>& requests);

}  // namespace assay
