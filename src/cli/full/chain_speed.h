#pragma once

// `assay chain speed`: makes the record of the suites' analysis.py from a training's log.

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "chain/results/speed_record.h"

namespace assay::cli::full {

struct SpeedArguments {
  chain::results::SpeedQuestion question;
};

CLI::App* add_speed(CLI::App& chain, SpeedArguments& arguments);
Result<int> speed(const SpeedArguments& arguments);

}  // namespace assay::cli::full
