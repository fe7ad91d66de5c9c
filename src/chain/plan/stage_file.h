#pragma once

// A chain of any commands, for projects without params files (docs/reference/chain-lists.md).

#include <string>

#include "base/result.h"
#include "chain/plan/plan.h"

namespace assay::chain::plan {

// Plans the file's stages: preparation, training, evaluation, export, conversion, inference. An
// unknown key, kind or stage is a usage error that names the file. `python` replaces a command's
// interpreter if it is not empty; logs and results go below `output_root`, by default
// ./assay-chain.
Result<Plan> read_stage_file(const std::string& path, const std::string& python,
                             const std::string& output_root);

}  // namespace assay::chain::plan
