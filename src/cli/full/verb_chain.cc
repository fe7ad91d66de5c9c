#include "cli/full/verb_chain.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/process.h"
#include "base/terminal.h"
#include "base/text.h"
#include "chain/fleet/fleet.h"
#include "chain/params/launch_script.h"
#include "chain/params/params.h"
#include "chain/plan/launch_plan.h"
#include "chain/plan/make_plan.h"
#include "chain/plan/plan.h"
#include "chain/plan/plan_builder.h"
#include "chain/plan/plan_text.h"
#include "chain/results/chain_store.h"
#include "chain/results/compare.h"
#include "chain/results/report_html.h"
#include "chain/run/runner.h"
#include "chain/stage/monitor.h"
#include "cli/exit_code.h"
#include "cli/full/chain_check.h"
#include "cli/full/chain_rehearse.h"
#include "cli/full/chain_speed.h"

namespace assay::cli::full {

using namespace chain;

namespace {

// ---- fleet and node: `run` starts them for stages on many machines ----

void add_fleet_options(CLI::App& app, fleet::FleetOptions& options, double& join, double& lost) {
  app.add_option("--port", options.muster.port, "Port on which the machines of a fleet meet")
      ->check(CLI::Range(1, 65535));
  app.add_option("--join-limit", join, "Seconds to wait for all machines (default 120)");
  app.add_option("--lost-limit", lost,
                 "Seconds without a heartbeat after which a machine is lost (default 15)");
}

void add_remote_options(CLI::App& app, fleet::FleetOptions& options) {
  app.add_option("--remote", options.remote,
                 "Command that reaches another machine; {host} is its name");
  app.add_option("--remote-program", options.program,
                 "Path of assay on the other machines (default: the same path)");
  app.add_option("--alias", options.aliases,
                 "ADDRESS=NAME: the {host} of an address. With it, no machine counts as this one");
}

struct NodeArguments {
  fleet::FleetTask task;
  std::string hosts;
  int rank = -1;
  double join = 120;
  double lost = 15;
};

void add_task_options(CLI::App& app, NodeArguments& arguments) {
  fleet::FleetOptions& options = arguments.task.options;
  add_fleet_options(app, options, arguments.join, arguments.lost);
  app.add_option("--hosts", arguments.hosts, "Addresses of all machines, rank 0 first")->required();
  app.add_option("--env", arguments.task.environment, "NAME=VALUE in the training's environment")
      ->allow_extra_args(false);
  app.add_option("--directory", arguments.task.directory, "Working folder of the training");
  app.add_option("--launch-logs", arguments.task.launch_logs,
                 "Folder of the launcher's worker logs (default log)");
  app.add_flag("--gloo", arguments.task.gloo, "The training uses gloo instead of NCCL");
  app.add_option("ARGV", arguments.task.argv, "The training's command")->required();
}

CLI::App* add_fleet(CLI::App& chain, NodeArguments& arguments) {
  CLI::App* app =
      chain.add_subcommand("fleet", "Run one command on many machines (`run` starts it)");
  add_task_options(*app, arguments);
  add_remote_options(*app, arguments.task.options);
  return app;
}

CLI::App* add_node(CLI::App& chain, NodeArguments& arguments) {
  CLI::App* app = chain.add_subcommand("node", "Run one machine's share (`fleet` starts it)");
  add_task_options(*app, arguments);
  app->add_option("--rank", arguments.rank, "Rank of this machine (default: by its addresses)");
  return app;
}

Status complete(NodeArguments& arguments) {
  fleet::MusterOptions& muster = arguments.task.options.muster;
  muster.hosts = split_at(arguments.hosts, ',');
  muster.join = stage::Seconds(arguments.join);
  muster.lost = stage::Seconds(arguments.lost);
  if (arguments.task.directory.empty()) {
    std::error_code error;
    arguments.task.directory = std::filesystem::current_path(error).string();
  }
  if (arguments.rank >= static_cast<int>(muster.hosts.size()))
    return usage_error("--rank is higher than the last machine of --hosts");
  if (arguments.rank >= 0) muster.rank = static_cast<std::size_t>(arguments.rank);
  return {};
}

Result<int> fleet(NodeArguments& arguments) {
  ASSAY_CHECK(complete(arguments));
  ASSAY_TRY(const std::string self, own_executable());
  return fleet::drive_fleet(arguments.task, self);
}

Result<int> node(NodeArguments& arguments) {
  ASSAY_CHECK(complete(arguments));
  fleet::MusterOptions& muster = arguments.task.options.muster;
  if (arguments.rank < 0) {
    ASSAY_TRY(muster.rank, fleet::own_rank(muster.hosts));
  }
  return fleet::run_node(arguments.task);
}

// ---- run ----

struct RunArguments {
  std::string file;
  std::string mode;
  std::string folder;
  DialectArguments dialect;
  std::string machines;  // "a,b"
  bool dry_run = false;
  bool json = false;
  ScriptArguments script;
  double stage_limit = 0;
  double idle_limit = 300;
  double budget = 900;
  double join = 120;
  double lost = 15;
  plan::PlanOptions plan;
  run::RunOptions run;
};

std::vector<std::string> alarm_words() {
  std::vector<std::string> words;
  for (const stage::Alarm& alarm : stage::alarms()) words.emplace_back(alarm.word);
  return words;
}

std::string stop_on_help() {
  std::string text = "End a training when";
  for (const stage::Alarm& alarm : stage::alarms()) {
    text += fmt::format("{} {} ({})", &alarm == stage::alarms().data() ? "" : ",", alarm.word,
                        stage::meaning(alarm));
  }
  return text;
}

// CLI11's own range checks would print the largest double.
CLI::Validator at_least(double least) {
  return CLI::Validator(
      [least](std::string& text) {
        const bool too_small = std::strtod(text.c_str(), nullptr) < least;
        return too_small ? fmt::format("expected {:g} or more, found {}", least, text)
                         : std::string();
      },
      "");
}

CLI::App* add_run(CLI::App& chain, RunArguments& arguments) {
  CLI::App* app = chain.add_subcommand("run", "Run a params file in the model's folder");
  app->add_option("FILE", arguments.file, "Params file, or a launching script (.sh)")->required();
  app->add_option("MODE", arguments.mode, "Mode: lite_train_lite_infer, whole_infer, …")
      ->required();
  app->add_option("THIRD", arguments.plan.third,
                  "whole_infer: CUDA_VISIBLE_DEVICES; benchmark_train: what to train, such as "
                  "dynamic_bs8_fp32_DP_N1C1");
  add_dialect_options(*app, arguments.dialect);
  app->add_option("--device", arguments.plan.device,
                  "Device to train and infer on: gpu (as in the file), cpu, xpu, npu");
  app->add_flag("--fix", arguments.plan.fix,
                "Follow the params file where the suite's own bash deviates from it");
  app->add_flag("--fallback-checkpoint", arguments.plan.fallback_checkpoint,
                "Use the newest checkpoint (iter_N) instead of the one that the file names");
  app->add_option("-C,--directory", arguments.folder,
                  "The model's folder (default: the working folder)");
  CLI::Option* dry =
      app->add_flag("--dry-run", arguments.dry_run, "Print the stages without running them");
  app->add_flag("--json", arguments.json, "With --dry-run: print one JSON object per line")
      ->needs(dry);
  add_script_options(*app, arguments.script, dry);
  app->add_option("-k,--filter", arguments.plan.filters,
                  "Only stages whose name contains this, and the stages that they need")
      ->allow_extra_args(false);
  app->add_option("--stop-on", arguments.run.stop_on, stop_on_help())
      ->delimiter(',')
      ->check(CLI::IsMember(alarm_words()));
  app->add_flag("--resume", arguments.run.resume,
                "Skip stages that passed before and whose files are unchanged");
  app->add_option("-j,--jobs", arguments.run.jobs,
                  "Stages at the same time, as far as devices allow")
      ->check(at_least(1));
  app->add_option(
         "--stage-limit", arguments.stage_limit,
         "Time limit of a stage in seconds; 0: none (default: 900; none for whole training)")
      ->check(at_least(0));
  app->add_option("--idle-limit", arguments.idle_limit,
                  "Seconds without output after which a stage is ended; 0: none (default 300)")
      ->check(at_least(0));
  app->add_option("--budget", arguments.budget,
                  "Time budget of the whole model in seconds; the table shows each stage's share "
                  "(default 900)")
      ->check(at_least(1));
  app->add_option("--page", arguments.run.page_path,
                  "Write the page of the run, with its curves, to this file while it runs");
  app->add_option("--store", arguments.run.store_path,
                  "File of the results (default: chain.db beside the logs)");
  app->add_option("--python", arguments.plan.python, "Interpreter, instead of the params file's");
  app->add_option(
      "--dynamic", arguments.plan.dynamic,
      "Compare each fp32 inference with this dynamic inference: arguments of the interpreter "
      "with {weights} and {images}");
  app->add_option("--prepare", arguments.plan.prepare,
                  "Run this script first, as a stage of its own");
  app->add_flag("--fleet-on-cpu", arguments.plan.fleet_on_cpu,
                "Many machines train on CPUs (gloo)");
  app->add_option("--ps-servers", arguments.plan.ps_servers,
                  "Parameter Server mode: number of servers on each machine")
      ->check(CLI::Range(1, 99));
  app->add_option("--ps-trainers", arguments.plan.ps_trainers,
                  "Parameter Server mode: number of trainers on each machine (default 1)")
      ->check(CLI::Range(1, 99));
  app->add_flag("--per-node", arguments.run.fleet.per_node,
                "Train only this machine's share, when srun starts assay on every machine; rank 0 "
                "does the rest");
  app->add_option("--machines", arguments.machines,
                  "Addresses, the first machine's first, instead of those that the file's gpu_list "
                  "names (those of a Slurm allocation)");
  add_fleet_options(*app, arguments.run.fleet, arguments.join, arguments.lost);
  add_remote_options(*app, arguments.run.fleet);
  return app;
}

double stage_limit(const RunArguments& arguments, const CLI::App& app) {
  if (app.count("--stage-limit") > 0) return arguments.stage_limit;
  // Launching scripts set their own `timeout`, of up to an hour.
  if (params::is_launch_script(arguments.file)) return 0;
  constexpr double kLite = 900;
  return arguments.mode.starts_with("whole_train") ? 0 : kLite;
}

// Leaves only the fleet's training in the plan of a machine other than the first: the first machine
// keeps all outputs and runs the other stages.
Status keep_own_share(plan::Plan& plan, run::RunOptions& options) {
  const auto fleet_stage =
      std::find_if(plan.stages.begin(), plan.stages.end(),
                   [](const plan::Stage& stage) { return !stage.hosts.empty(); });
  if (fleet_stage == plan.stages.end())
    return usage_error("--per-node: no stage runs on many machines");
  ASSAY_TRY(const std::size_t rank, fleet::own_rank(fleet_stage->hosts));
  if (rank == 0) return {};
  std::erase_if(plan.stages, [](const plan::Stage& stage) { return stage.hosts.empty(); });
  const std::string suffix = fmt::format(".rank{}", rank);
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    plan.stages[i].index = i;
    plan.stages[i].needs.clear();
    plan.stages[i].output.clear();
    plan.stages[i].log += suffix;
  }
  plan.results_log += suffix;
  options.store_path =
      (options.store_path.empty() ? plan.folder + "/chain.db" : options.store_path) + suffix;
  return {};
}

// The plan of a launching script, which starts in the working folder: the suite's checkout.
Result<plan::Plan> planned_launch(const RunArguments& arguments) {
  const params::ReadLaunch read = params::read_launch(arguments.file, ".");
  const std::string told = params::describe(read.problems);
  if (!read.good()) return usage_error(told);
  if (!told.empty()) show(stderr, "{}\n", told);
  if (arguments.dry_run && !arguments.json) show(stdout, "{}", plan::describe_launch(read.script));
  return plan::make_launch_plan(read.script, arguments.mode, arguments.plan);
}

Result<plan::Plan> rehearsed(const RunArguments& arguments) {
  script::ScriptRequest request = arguments.script.request;
  request.params_file = arguments.file;
  request.mode = arguments.mode;
  request.third = arguments.plan.third;
  request.python = arguments.plan.python;
  request.makes_checkpoint = !arguments.plan.fallback_checkpoint;
  ASSAY_TRY(plan::Plan plan, rehearsed_plan(std::move(request)));
  return plan::filtered(std::move(plan), arguments.plan.filters);
}

Result<plan::Plan> planned(const RunArguments& arguments) {
  if (arguments.script.by_script) return rehearsed(arguments);
  if (params::is_launch_script(arguments.file)) {
    if (!arguments.machines.empty()) {
      return usage_error(
          "--machines is for params files: a launching script names its machines itself");
    }
    return planned_launch(arguments);
  }
  std::optional<params::Dialects> own;
  ASSAY_TRY(const params::Dialects* dialects, dialects_of(arguments.dialect, own));
  std::string warnings;
  params::Origin origin{arguments.file, arguments.dialect.name, dialects};
  if (!arguments.machines.empty()) origin.machines = split_at(arguments.machines, ',');
  ASSAY_TRY(const params::Params params, params::load_params(origin, &warnings));
  if (!warnings.empty()) show(stderr, "{}\n", warnings);
  return plan::make_plan(params, arguments.mode, arguments.plan);
}

Result<int> run(RunArguments& arguments, const CLI::App& app) {
  if (!arguments.folder.empty() && ::chdir(arguments.folder.c_str()) != 0) {
    return errno_error("cannot change to the folder " + arguments.folder);
  }
  arguments.plan.params_path = arguments.file;
  arguments.run.params_path = arguments.file;
  ASSAY_TRY(arguments.run.self, own_executable());
  arguments.plan.self = arguments.run.self;
  ASSAY_TRY(plan::Plan plan, planned(arguments));
  for (const std::string& warning : plan.warnings) {
    show(stderr, "{}: warning: {}\n", arguments.file, warning);
  }
  if (arguments.dry_run) {
    show(stdout, "{}", arguments.json ? plan::plan_json_lines(plan) : plan::describe_plan(plan));
    return kAllGood;
  }
  if (plan.stages.empty()) return usage_error("nothing to run: " + plan.nothing);
  arguments.run.limits.stage = stage::Seconds(stage_limit(arguments, app));
  arguments.run.limits.idle = stage::Seconds(arguments.idle_limit);
  arguments.run.own_idle_limit = app.count("--idle-limit") > 0;
  arguments.run.budget = stage::Seconds(arguments.budget);
  arguments.run.progress = stderr;
  arguments.run.live = ::isatty(STDERR_FILENO) == 1;
  arguments.run.fleet.muster.join = stage::Seconds(arguments.join);
  arguments.run.fleet.muster.lost = stage::Seconds(arguments.lost);
  if (arguments.run.fleet.per_node) ASSAY_CHECK(keep_own_share(plan, arguments.run));
  ASSAY_TRY(const run::RunResult result, run::run_plan(plan, arguments.run));
  show(stdout, "{}", run::time_table(result, arguments.run.budget));
  if (result.interrupted) return kInterrupted;
  return result.all_passed() ? kAllGood : kSomeFailed;
}

// ---- compare and report ----

struct CompareArguments {
  std::string stored;
  std::string logs;
  std::string dynamic_path;
  std::string static_path;
  std::string base;
  std::string current;
  results::OutputTolerance tolerance;
  results::RunThresholds thresholds;
};

CLI::App* add_compare(CLI::App& chain, CompareArguments& arguments) {
  CLI::App* app =
      chain.add_subcommand("compare", "Compare logs with stored results, or two stores");
  CLI::Option* stored = app->add_option("--gt_file", arguments.stored,
                                        "Stored results: a path, with * in the file's name");
  app->add_option("--log_file", arguments.logs, "Inference logs: a path, with * in the file's name")
      ->needs(stored);
  app->add_option("--atol", arguments.tolerance.atol, "Absolute tolerance (default 0.001)");
  app->add_option("--rtol", arguments.tolerance.rtol, "Relative tolerance (default 0.001)");
  CLI::Option* dynamic_option = app->add_option("--dynamic", arguments.dynamic_path,
                                                "Log (or .npy) of the dynamic inference");
  app->add_option("--static", arguments.static_path,
                  "Log (or .npy) of the exported model's inference on the same input")
      ->needs(dynamic_option);
  CLI::Option* base = app->add_option("--base", arguments.base, "Store of the earlier run");
  app->add_option("--current", arguments.current, "Store of the run to judge")->needs(base);
  app->add_option("--loss-rtol", arguments.thresholds.loss_rtol,
                  "Relative tolerance of each loss (default 0.001)");
  app->add_option("--slower", arguments.thresholds.speed,
                  "Share of speed that may be lost (default 0.1)");
  app->add_option("--larger", arguments.thresholds.memory,
                  "Share of memory that may be added (default 0.1)");
  return app;
}

Result<int> compare(const CompareArguments& arguments) {
  std::vector<results::Finding> findings;
  if (!arguments.logs.empty()) {
    ASSAY_TRY(findings,
              results::compare_files(arguments.stored, arguments.logs, arguments.tolerance));
  }
  if (!arguments.static_path.empty()) {
    ASSAY_TRY(const std::vector<results::Finding> more,
              results::compare_dynamic_static(arguments.dynamic_path, arguments.static_path,
                                              arguments.tolerance));
    findings.insert(findings.end(), more.begin(), more.end());
  }
  if (!arguments.current.empty()) {
    ASSAY_TRY(results::ChainStore base,
              results::ChainStore::open(arguments.base, OpenMode::existing));
    ASSAY_TRY(results::ChainStore current,
              results::ChainStore::open(arguments.current, OpenMode::existing));
    ASSAY_TRY(const std::vector<results::Finding> more,
              results::compare_runs(base, current, arguments.thresholds));
    findings.insert(findings.end(), more.begin(), more.end());
  }
  if (findings.empty())
    return usage_error(
        "nothing to compare: give --gt_file and --log_file, --dynamic and --static, or --base and "
        "--current");
  bool good = true;
  for (const results::Finding& one : findings) {
    const bool fine = one.grade == results::Finding::Grade::good;
    good = good && fine;
    show(stdout, "{} {}\n",
         fine                                        ? "good   "
         : one.grade == results::Finding::Grade::bad ? "BAD    "
                                                     : "VACUOUS",
         one.text);
  }
  return good ? kAllGood : kSomeFailed;
}

struct ReportArguments {
  std::string store;
  std::string out = "chain.html";
  double budget = 900;
};

CLI::App* add_report(CLI::App& chain, ReportArguments& arguments) {
  CLI::App* app = chain.add_subcommand("report", "Write the latest run of a store as an HTML page");
  app->add_option("STORE", arguments.store, "The store: chain.db")->required();
  app->add_option("-o,--out", arguments.out, "File of the page (default chain.html)");
  app->add_option("--budget", arguments.budget,
                  "Time budget of the whole model in seconds (default 900)");
  return app;
}

Result<int> report(const ReportArguments& arguments) {
  ASSAY_TRY(results::ChainStore store,
            results::ChainStore::open(arguments.store, OpenMode::existing));
  ASSAY_TRY(const std::string page, results::chain_report(store, arguments.budget));
  ASSAY_CHECK(write_file(arguments.out, page));
  show(stdout, "{}\n", arguments.out);
  return kAllGood;
}

struct ChainArguments {
  CheckArguments check;
  RunArguments run;
  NodeArguments fleet;
  NodeArguments node;
  CompareArguments compare;
  SpeedArguments speed;
  ReportArguments report;
};

}  // namespace

Verb add_chain_verb(CLI::App& parent) {
  Verb verb;
  verb.app = parent.add_subcommand("chain", "Run training and inference chains (TIPC)");
  verb.app->require_subcommand(1);
  auto arguments = std::make_shared<ChainArguments>();
  CLI::App* check_app = add_check(*verb.app, arguments->check);
  CLI::App* run_app = add_run(*verb.app, arguments->run);
  CLI::App* fleet_app = add_fleet(*verb.app, arguments->fleet);
  CLI::App* node_app = add_node(*verb.app, arguments->node);
  CLI::App* compare_app = add_compare(*verb.app, arguments->compare);
  CLI::App* speed_app = add_speed(*verb.app, arguments->speed);
  CLI::App* report_app = add_report(*verb.app, arguments->report);
  verb.run = [=]() -> Result<int> {
    if (check_app->parsed()) return check(arguments->check);
    if (fleet_app->parsed()) return fleet(arguments->fleet);
    if (node_app->parsed()) return node(arguments->node);
    if (compare_app->parsed()) return compare(arguments->compare);
    if (speed_app->parsed()) return speed(arguments->speed);
    if (report_app->parsed()) return report(arguments->report);
    return run(arguments->run, *run_app);
  };
  return verb;
}

}  // namespace assay::cli::full
