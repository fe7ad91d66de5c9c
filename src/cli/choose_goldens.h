#pragma once

// Goldens in place of the reference lane.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/run_config.h"

namespace assay {

// How --reference-lane=gold:PATH|URL begins.
inline constexpr std::string_view kGoldens = "gold:";

// Makes the run compare with the goldens at a path or an address, and notes what differs between
// the run that recorded them and this one. An error if that makes the results incomparable. The
// mode, the settings and the folder of `config` must be set: a copy of goldens from an address lies
// in that folder.
Status choose_goldens(const std::string& where, RunConfig& config, std::vector<std::string>& notes);

}  // namespace assay
