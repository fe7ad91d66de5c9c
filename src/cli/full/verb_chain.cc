#include "cli/full/verb_chain.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/process.h"
#include "base/terminal.h"
#include "base/text.h"
#include "chain/fleet/fleet.h"
#include "chain/history/golden_json.h"
#include "chain/results/chain_store.h"
#include "chain/results/compare.h"
#include "chain/results/report_html.h"
#include "cli/exit_code.h"
#include "cli/full/chain_check.h"
#include "cli/full/chain_golden.h"
#include "cli/full/chain_remote.h"
#include "cli/full/chain_run.h"
#include "cli/full/chain_speed.h"

namespace assay::cli::full {

using namespace chain;

namespace {

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
  app->add_option("--atol", arguments.tolerance.atol,
                  "Absolute tolerance (default 0.001; with --dynamic less for small values)");
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
  std::string goldens = "goldens";
  double budget = 900;
};

CLI::App* add_report(CLI::App& chain, ReportArguments& arguments) {
  CLI::App* app = chain.add_subcommand("report", "Write the latest run of a store as an HTML page");
  app->add_option("STORE", arguments.store, "The store: chain.db")->required();
  app->add_option("-o,--out", arguments.out, "File of the page (default chain.html)");
  app->add_option("--budget", arguments.budget,
                  "Time budget of the whole model in seconds (default 900)");
  app->add_option("--goldens", arguments.goldens,
                  "Folder of the golden files that the page compares with (default goldens)");
  return app;
}

Result<int> report(const ReportArguments& arguments) {
  ASSAY_TRY(results::ChainStore store,
            results::ChainStore::open(arguments.store, OpenMode::existing));
  ASSAY_TRY(const std::string beside, history::beside_golden(store, arguments.goldens));
  ASSAY_TRY(const std::string page, results::chain_report(store, arguments.budget, beside));
  ASSAY_CHECK(write_file(arguments.out, page));
  show(stdout, "{}\n", arguments.out);
  return kAllGood;
}

struct ChainArguments {
  CheckArguments check;
  RunArguments run;
  NodeArguments fleet;
  NodeArguments node;
  RemoteArguments remote;
  CompareArguments compare;
  SpeedArguments speed;
  RecordArguments record;
  JudgeArguments judge;
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
  CLI::App* remote_app = add_remote(*verb.app, arguments->remote);
  CLI::App* compare_app = add_compare(*verb.app, arguments->compare);
  CLI::App* speed_app = add_speed(*verb.app, arguments->speed);
  CLI::App* record_app = add_record(*verb.app, arguments->record);
  CLI::App* judge_app = add_judge(*verb.app, arguments->judge);
  CLI::App* report_app = add_report(*verb.app, arguments->report);
  verb.run = [=]() -> Result<int> {
    if (check_app->parsed()) return check(arguments->check);
    if (fleet_app->parsed()) return fleet(arguments->fleet);
    if (node_app->parsed()) return node(arguments->node);
    if (remote_app->parsed()) return remote(arguments->remote);
    if (compare_app->parsed()) return compare(arguments->compare);
    if (speed_app->parsed()) return speed(arguments->speed);
    if (record_app->parsed()) return record(arguments->record);
    if (judge_app->parsed()) return judge(arguments->judge);
    if (report_app->parsed()) return report(arguments->report);
    return run(arguments->run, *run_app);
  };
  return verb;
}

}  // namespace assay::cli::full
