#pragma once

// A training stage on many machines. The chain starts one driver process (`assay chain fleet`), which
// starts the stage on every machine, watches them all, and names the one that fails.

#include <string>
#include <string_view>
#include <vector>

#include "chain/plan.h"
#include "chain/stage_run.h"

namespace assay {

// A line of the driver's output that starts so tells what went wrong, for the chain's own record.
inline constexpr std::string_view kFleetWord = "assay-fleet: ";

// The stage as the driver is told of it. `driver` is the program and its options ("assay", "chain",
// "fleet", …).
StageCommand fleet_command(const Stage& stage, const std::vector<std::string>& driver,
                           const Limits& limits);

}  // namespace assay
