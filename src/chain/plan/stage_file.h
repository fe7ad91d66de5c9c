#pragma once

// A chain of any commands, for projects without params files:
//
//   version = 1
//   model = "bert"
//   [stages.train]                 the name; it also is the kind unless `kind` says otherwise
//   command = "python train.py --out=out"
//   makes = "out/model"            the files that it must write begin so
//   reads = "data"                 the files of earlier stages that it reads begin so
//   needs = ["prepare"]            default: by kind, the last stage that makes what it reads
//   device = "gpu 0"               default "cpu"; decides which stages run together with -j
//   environment = ["FLAGS_x=1"]
//   directory = "sub"
//   may_stop_early = true          fewer epochs than asked for are right
//   log = { loss = "cost is (\\S+)" }   a loss that assay does not read itself
//
// Kinds: prepare, train, eval, export, convert, infer.

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
