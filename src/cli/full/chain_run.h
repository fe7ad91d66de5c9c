#pragma once

// `assay chain run`, and the options of fleets that chain verbs share.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "chain/fleet/fleet.h"
#include "chain/run/runner.h"
#include "chain/script/script_plan.h"

namespace assay::cli::full {

void add_fleet_options(CLI::App& app, chain::fleet::FleetOptions& options, double& join,
                       double& lost);
void add_remote_options(CLI::App& app, chain::fleet::FleetOptions& options);

struct RunArguments {
  std::string file;
  std::string mode;
  std::string folder;
  std::string output_root;
  std::string machines;  // "a,b"
  std::string gpus;      // "2,3"
  bool report_line = false;
  bool dry_run = false;
  bool json = false;
  double stage_limit = 0;
  double idle_limit = 300;
  double budget = 900;
  double join = 120;
  double lost = 15;
  chain::script::ScriptRequest script;
  bool fallback_checkpoint = false;
  std::vector<std::string> filters;
  chain::run::RunOptions run;
};

CLI::App* add_run(CLI::App& chain, RunArguments& arguments);
Result<int> run(RunArguments& arguments, const CLI::App& app);

}  // namespace assay::cli::full
