#include "cli/verb_chain.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/process.h"
#include "chain/params.h"
#include "chain/plan.h"
#include "chain/plan_text.h"
#include "chain/runner.h"
#include "cli/exit_code.h"

namespace assay {
namespace {

// ---- check ----

struct CheckArguments {
  std::vector<std::string> files;
};

Result<int> check(const CheckArguments& arguments) {
  bool good = true;
  for (const std::string& file : arguments.files) {
    std::string warnings;
    const auto params = load_params(file, &warnings);
    if (!params) {
      good = false;
      fmt::print(stderr, "{}\n", params.error().message);
      continue;
    }
    if (!warnings.empty()) fmt::print(stderr, "{}\n", warnings);
    fmt::print("{}: good ({}; modes {})\n", file, params->layout().name, params->layout().modes);
  }
  return good ? kAllGood : kUsage;
}

CLI::App* add_check(CLI::App& chain, CheckArguments& arguments) {
  CLI::App* app = chain.add_subcommand("check", "say what is wrong with params files; runs nothing");
  app->add_option("FILE", arguments.files, "params files")->required();
  return app;
}

// ---- run ----

struct RunArguments {
  std::string file;
  std::string mode;
  std::string folder;
  bool dry_run = false;
  bool json = false;
  double stage_limit = 0;
  double idle_limit = 300;
  double budget = 900;
  PlanOptions plan;
  RunOptions run;
};

CLI::App* add_run(CLI::App& chain, RunArguments& arguments) {
  CLI::App* app = chain.add_subcommand("run", "run a params file in the model's folder");
  app->add_option("FILE", arguments.file, "params file")->required();
  app->add_option("MODE", arguments.mode, "lite_train_lite_infer, whole_infer, …")->required();
  app->add_option("GPU", arguments.plan.gpu_id, "CUDA_VISIBLE_DEVICES of whole_infer");
  app->add_option("-C,--directory", arguments.folder, "the model's folder (default: here)");
  app->add_flag("--dry-run", arguments.dry_run, "print the stages, run nothing");
  app->add_flag("--json", arguments.json, "with --dry-run: one JSON object a line");
  app->add_option("-k,--filter", arguments.plan.filters, "only stages whose name holds this, and what they need")
      ->allow_extra_args(false);
  app->add_flag("--resume", arguments.run.resume, "keep what passed before and lies there unchanged");
  app->add_option("-j,--jobs", arguments.run.jobs, "stages at a time, where devices allow");
  app->add_option("--stage-limit", arguments.stage_limit,
                  "seconds a stage may take (default: 900; none for whole training; 0: none)");
  app->add_option("--idle-limit", arguments.idle_limit, "seconds without output (default 300; 0: none)");
  app->add_option("--budget", arguments.budget, "seconds for the whole model, told per stage (default 900)");
  app->add_option("--store", arguments.run.store_path, "results (default: chain.db beside the logs)");
  app->add_option("--python", arguments.plan.python, "instead of the params file's interpreter");
  app->add_option("--prepare", arguments.plan.prepare, "run this script first, as a stage of its own");
  app->add_flag("--fleet-on-cpu", arguments.plan.fleet_on_cpu, "many machines train on CPU (gloo)");
  return app;
}

double stage_limit(const RunArguments& arguments, const CLI::App& app) {
  if (app.count("--stage-limit") > 0) return arguments.stage_limit;
  constexpr double kLite = 900;
  return arguments.mode.starts_with("whole_train") ? 0 : kLite;
}

Result<int> run(RunArguments& arguments, const CLI::App& app) {
  if (!arguments.folder.empty() && ::chdir(arguments.folder.c_str()) != 0) {
    return errno_error("cannot go to " + arguments.folder);
  }
  arguments.plan.params_path = arguments.file;
  arguments.run.params_path = arguments.file;
  std::string warnings;
  ASSAY_TRY(const Params params, load_params(arguments.file, &warnings));
  if (!warnings.empty()) fmt::print(stderr, "{}\n", warnings);
  ASSAY_TRY(const Plan plan, make_plan(params, arguments.mode, arguments.plan));
  for (const std::string& warning : plan.warnings) {
    fmt::print(stderr, "{}: warning: {}\n", arguments.file, warning);
  }
  if (arguments.dry_run) {
    fmt::print("{}", arguments.json ? plan_json_lines(plan) : describe_plan(plan));
    return kAllGood;
  }
  arguments.run.limits.stage = Seconds(stage_limit(arguments, app));
  arguments.run.limits.idle = Seconds(arguments.idle_limit);
  arguments.run.budget = Seconds(arguments.budget);
  arguments.run.progress = stderr;
  arguments.run.live = ::isatty(STDERR_FILENO) == 1;
  ASSAY_TRY(const std::string self, own_executable());
  arguments.run.fleet = {self, "chain", "fleet"};
  ASSAY_TRY(const RunResult result, run_plan(plan, arguments.run));
  fmt::print("{}", time_table(result, arguments.run.budget));
  if (result.interrupted) return kInterrupted;
  return result.all_passed() ? kAllGood : kSomeFailed;
}

struct ChainArguments {
  CheckArguments check;
  RunArguments run;
};

}  // namespace

Verb add_chain_verb(CLI::App& parent) {
  Verb verb;
  verb.app = parent.add_subcommand("chain", "run TIPC training and inference chains");
  verb.app->require_subcommand(1);
  auto arguments = std::make_shared<ChainArguments>();
  CLI::App* check_app = add_check(*verb.app, arguments->check);
  CLI::App* run_app = add_run(*verb.app, arguments->run);
  verb.run = [=]() -> Result<int> {
    if (check_app->parsed()) return check(arguments->check);
    return run(arguments->run, *run_app);
  };
  return verb;
}

}  // namespace assay
