#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/process.h"
#include "base/terminal.h"
#include "base/text.h"
#include "campaign/results.h"
#include "chain/fleet/fleet.h"
#include "chain/plan/stage_file.h"
#include "chain/run/runner.h"
#include "chain/stage/monitor.h"
#include "cli/full/verbs.h"

namespace assay::cli::full {

using namespace chain;

namespace {

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
  script::ScriptRequest script;
  bool fallback_checkpoint = false;
  std::vector<std::string> filters;
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

void add_fleet_options(CLI::App& app, fleet::FleetOptions& options, double& join, double& lost) {
  app.add_option("--port", options.rendezvous.port, "Port on which the machines of a fleet meet")
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

void add_limits(CLI::App& app, RunArguments& arguments) {
  app.add_option(
         "--stage-limit", arguments.stage_limit,
         "Time limit of a stage in seconds; 0: none (default: 900; none for whole training)")
      ->check(at_least(0));
  app.add_option("--idle-limit", arguments.idle_limit,
                 "Seconds without output after which a stage is ended; 0: none (default 300)")
      ->check(at_least(0));
  app.add_option("--budget", arguments.budget,
                 "Time budget of the whole model in seconds; the table shows each stage's share "
                 "(default 900)")
      ->check(at_least(1));
  app.add_option("--page", arguments.run.page_path,
                 "Write the page of the run, with its curves, to this file while it runs");
  app.add_option("--store", arguments.run.store_path,
                 "File of the results (default: chain.db beside the logs)");
}

void add_machines(CLI::App& app, RunArguments& arguments) {
  app.add_flag("--per-node", arguments.run.fleet.per_node,
               "Train only this machine's share, when srun starts assay on every machine; rank 0 "
               "does the rest");
  app.add_option("--machines", arguments.machines,
                 "Addresses, the first machine's first, instead of those that the file's gpu_list "
                 "names (those of a Slurm allocation)");
  add_fleet_options(app, arguments.run.fleet, arguments.join, arguments.lost);
  add_remote_options(app, arguments.run.fleet);
}

double stage_limit(const RunArguments& arguments, const CLI::App& app) {
  if (app.count("--stage-limit") > 0) return arguments.stage_limit;
  // Launching scripts set their own `timeout`, of up to an hour.
  if (arguments.file.ends_with(".sh")) return 0;
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
  options.rank_suffix = suffix;
  options.store_path =
      (options.store_path.empty() ? plan.folder + "/chain.db" : options.store_path) + suffix;
  return {};
}

bool is_stage_file(const std::string& file) { return file.ends_with(".toml"); }

void fill(RunArguments& arguments, const CLI::App& app) {
  run::RunOptions& options = arguments.run;
  options.params_path = arguments.file;
  options.limits.stage = stage::Seconds(stage_limit(arguments, app));
  options.limits.idle = stage::Seconds(arguments.idle_limit);
  options.budget = stage::Seconds(arguments.budget);
  options.progress = stderr;
  options.live = ::isatty(STDERR_FILENO) == 1;
  options.fleet.rendezvous.join = stage::Seconds(arguments.join);
  options.fleet.rendezvous.lost = stage::Seconds(arguments.lost);
  options.device = arguments.script.device;
  options.filtered = !arguments.filters.empty();
  script::ScriptRequest& request = arguments.script;
  request.params_file = arguments.file;
  request.mode = arguments.mode;
  request.output_root = arguments.output_root;
  request.makes_checkpoint = !arguments.fallback_checkpoint;
  request.shim = script::shim_beside(options.self);
  options.shim = request.shim;
  if (!arguments.machines.empty()) request.machines = split_at(arguments.machines, ',');
  if (arguments.gpus.empty()) return;
  request.gpus = split_at(arguments.gpus, ',');
  ::setenv("CUDA_VISIBLE_DEVICES", arguments.gpus.c_str(), 1);  // of stages without a device
}

// The plan, and with it the script if one drives the run.
struct Planned {
  plan::Plan plan;
  std::optional<script::Script> script;
};

Result<Planned> planned(const RunArguments& arguments) {
  Planned planned;
  if (is_stage_file(arguments.file)) {
    ASSAY_TRY(planned.plan, plan::read_stage_file(arguments.file, arguments.script.python,
                                                  arguments.output_root));
  } else if (arguments.file.ends_with(".py")) {
    return usage_error(
        fmt::format("{} is a program: list it as a stage, [stages.train] command = \"python {}\", "
                    "in chain.toml, "
                    "and run that (docs/how-to/pytorch-training-as-a-chain.md)",
                    arguments.file, arguments.file));
  } else {
    if (arguments.mode.empty()) return usage_error("MODE is missing: lite_train_lite_infer, …");
    if (arguments.run.jobs > 1) {
      return usage_error("--jobs is for lists of stages (.toml): a script decides what runs when");
    }
    ASSAY_TRY(planned.script, script::read_script(arguments.script));
    auto plan = script::rehearsed_plan(*planned.script, arguments.script);
    // What runs decides: a real run has what a rehearsal lacks, such as files that `wget` brings.
    const bool needed = arguments.dry_run || planned.script->standard ||
                        !arguments.filters.empty() || arguments.run.fleet.per_node;
    if (!plan && needed) return tl::unexpected<Error>(plan.error());
    planned.plan = plan ? std::move(*plan) : script::bare_plan(*planned.script);
    if (!plan) {
      planned.plan.warnings.push_back("its stages are not known before it runs: " +
                                      plan.error().message);
    }
    if (planned.script->standard) {
      planned.plan.warnings.emplace_back("no script found: the standard script is used");
    }
  }
  ASSAY_TRY(planned.plan, plan::filtered(std::move(planned.plan), arguments.filters));
  return planned;
}

Result<int> run(RunArguments& arguments, const CLI::App& app) {
  if (!arguments.folder.empty() && ::chdir(arguments.folder.c_str()) != 0) {
    return errno_error("cannot change to the folder " + arguments.folder);
  }
  ASSAY_TRY(arguments.run.self, own_executable());
  fill(arguments, app);
  ASSAY_TRY(Planned chain, planned(arguments));
  plan::Plan& plan = chain.plan;
  for (const std::string& warning : plan.warnings) {
    show(stderr, "{}: warning: {}\n", arguments.file, warning);
  }
  if (arguments.dry_run) {
    show(stdout, "{}", arguments.json ? plan::plan_json_lines(plan) : plan::describe_plan(plan));
    return kAllGood;
  }
  const std::size_t stages = plan.stages.size();
  if (arguments.run.fleet.per_node) ASSAY_CHECK(keep_own_share(plan, arguments.run));
  const bool by_script = chain.script && plan.stages.size() == stages;
  if (by_script) arguments.run.results = chain.script->results;
  ASSAY_TRY(const run::RunResult result, by_script
                                             ? run::run_script(*chain.script, plan, arguments.run)
                                             : run::run_plan(plan, arguments.run));
  show(stdout, "{}", run::time_table(result, arguments.run.budget));
  show(stdout, "results: {}\n",
       arguments.run.store_path.empty() ? plan.folder + "/chain.db" : arguments.run.store_path);
  if (arguments.report_line) show(stdout, "{}\n", campaign::model_line(result));
  if (result.interrupted) return kInterrupted;
  return result.all_passed() ? kAllGood : kSomeFailed;
}

// ---- fleet and node: `run` starts them for stages on many machines ----

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

Status complete(NodeArguments& arguments) {
  fleet::RendezvousOptions& rendezvous = arguments.task.options.rendezvous;
  rendezvous.hosts = split_at(arguments.hosts, ',');
  rendezvous.join = stage::Seconds(arguments.join);
  rendezvous.lost = stage::Seconds(arguments.lost);
  if (arguments.task.directory.empty()) {
    std::error_code error;
    arguments.task.directory = std::filesystem::current_path(error).string();
  }
  if (arguments.rank >= static_cast<int>(rendezvous.hosts.size()))
    return usage_error("--rank is higher than the last machine of --hosts");
  if (arguments.rank >= 0) rendezvous.rank = static_cast<std::size_t>(arguments.rank);
  return {};
}

Result<int> fleet(NodeArguments& arguments) {
  ASSAY_CHECK(complete(arguments));
  ASSAY_TRY(const std::string self, own_executable());
  return fleet::drive_fleet(arguments.task, self);
}

Result<int> node(NodeArguments& arguments) {
  ASSAY_CHECK(complete(arguments));
  fleet::RendezvousOptions& rendezvous = arguments.task.options.rendezvous;
  if (arguments.rank < 0) {
    ASSAY_TRY(rendezvous.rank, fleet::own_rank(rendezvous.hosts));
  }
  return fleet::run_node(arguments.task);
}

}  // namespace

Verb add_chain_run(CLI::App& chain) {
  const auto options = std::make_shared<RunArguments>();
  RunArguments& arguments = *options;
  CLI::App* app = chain.add_subcommand("run", "Run a params file in the model's folder");
  app->add_option("FILE", arguments.file,
                  "Params file, launching script (.sh), or a list of stages (.toml)")
      ->required();
  app->add_option("MODE", arguments.mode,
                  "Mode of a params file or script: lite_train_lite_infer, whole_infer, …");
  app->add_option("THIRD", arguments.script.third,
                  "whole_infer: CUDA_VISIBLE_DEVICES; benchmark_train: what to train, such as "
                  "dynamic_bs8_fp32_DP_N1C1");
  app->add_option("--device", arguments.script.device,
                  "Device to train and infer on: gpu (as in the file), cpu, xpu, npu");
  app->add_option(
      "--script", arguments.script.script,
      "The suite's script (default: the one for this file and mode, else the standard script)");
  app->add_flag("--trust-script", arguments.script.trusted,
                "Rehearse the script also where the kernel cannot shut it in");
  app->add_flag("--lenient", arguments.run.lenient,
                "A stage passes by its exit code, its files and its device, whatever its log says");
  app->add_option(
      "--output-root", arguments.output_root,
      "Folder of assay's logs and results (default: test_tipc/assay; of a list of stages "
      "assay-chain)");
  app->add_option("--gpus", arguments.gpus,
                  "GPUs of this machine to use: the file's GPU n is the n-th of these");
  app->add_flag("--report-line", arguments.report_line,
                "Print the stages as a line of JSON for the campaign that started this run");
  app->add_flag("--fallback-checkpoint", arguments.fallback_checkpoint,
                "Use the newest checkpoint (iter_N) instead of the one that the file names");
  app->add_option("-C,--directory", arguments.folder,
                  "The model's folder (default: the working folder)");
  CLI::Option* dry =
      app->add_flag("--dry-run", arguments.dry_run, "Print the stages without running them");
  app->add_flag("--json", arguments.json, "With --dry-run: print one JSON object per line")
      ->needs(dry);
  app->add_option("-k,--filter", arguments.filters,
                  "Only stages whose name contains this, and the stages that they need")
      ->allow_extra_args(false);
  app->add_option("--stop-on", arguments.run.stop_on, stop_on_help())
      ->delimiter(',')
      ->check(CLI::IsMember(alarm_words()));
  app->add_flag("--resume", arguments.run.resume,
                "Skip stages that passed before and whose files are unchanged");
  app->add_option("-j,--jobs", arguments.run.jobs,
                  "Stages of a list (.toml) at the same time, as far as devices allow")
      ->check(at_least(1));
  add_limits(*app, arguments);
  app->add_option("--python", arguments.script.python, "Interpreter, instead of the params file's");
  app->add_option("--prepare", arguments.run.prepare,
                  "Run this script first, as a stage of its own");
  add_machines(*app, arguments);
  return {app, [options, app] { return run(*options, *app); }};
}

Verb add_chain_fleet(CLI::App& chain) {
  CLI::App* app =
      chain.add_subcommand("fleet", "Run one command on many machines (`run` starts it)");
  const auto arguments = std::make_shared<NodeArguments>();
  add_task_options(*app, *arguments);
  add_remote_options(*app, arguments->task.options);
  return {app, [arguments] { return fleet(*arguments); }};
}

Verb add_chain_node(CLI::App& chain) {
  CLI::App* app = chain.add_subcommand("node", "Run one machine's share (`fleet` starts it)");
  const auto arguments = std::make_shared<NodeArguments>();
  add_task_options(*app, *arguments);
  app->add_option("--rank", arguments->rank, "Rank of this machine (default: by its addresses)");
  return {app, [arguments] { return node(*arguments); }};
}

}  // namespace assay::cli::full
