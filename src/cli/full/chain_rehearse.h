#pragma once

// What `assay chain run --dry-run --by-script` and `assay chain check --rehearse` share.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "chain/plan/plan.h"
#include "chain/script/script_plan.h"

namespace assay::cli::full {

struct ScriptArguments {
  bool by_script = false;
  chain::script::ScriptRequest request;  // script and trusted
};

// The options need `dry_run`.
void add_script_options(CLI::App& app, ScriptArguments& arguments, CLI::Option* dry_run);

// plan_by_script() with the shim that lies beside assay.
Result<chain::plan::Plan> rehearsed_plan(chain::script::ScriptRequest request);

// Checks files by what their own scripts start in a mode. No dialect is needed. Returns the exit
// code.
Result<int> check_by_rehearsal(const std::vector<std::string>& files, const std::string& mode,
                               bool trusted);

}  // namespace assay::cli::full
