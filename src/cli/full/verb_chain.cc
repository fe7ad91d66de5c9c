#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/process.h"
#include "base/terminal.h"
#include "campaign/remote.h"
#include "chain/history/record.h"
#include "chain/results/chain_store.h"
#include "chain/results/compare.h"
#include "chain/results/report_html.h"
#include "cli/full/verbs.h"

namespace assay::cli::full {

using namespace chain;

namespace {

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

Result<int> report(const ReportArguments& arguments) {
  ASSAY_TRY(results::ChainStore store,
            results::ChainStore::open(arguments.store, OpenMode::existing));
  ASSAY_TRY(const std::string beside, history::beside_golden(store, arguments.goldens));
  ASSAY_TRY(const std::string page, results::chain_report(store, arguments.budget, beside));
  ASSAY_CHECK(write_file(arguments.out, page));
  show(stdout, "{}\n", arguments.out);
  return kAllGood;
}

struct RemoteArguments {
  double lost = 15;
  std::vector<std::string> words;
};

Result<int> remote(const RemoteArguments& arguments) {
  ASSAY_TRY(const std::string self, own_executable());
  return campaign::run_remote(self, arguments.words, arguments.lost);
}

}  // namespace

Verb add_chain_compare(CLI::App& chain) {
  const auto arguments = std::make_shared<CompareArguments>();
  CLI::App* app =
      chain.add_subcommand("compare", "Compare logs with stored results, or two stores");
  CLI::Option* stored = app->add_option("--gt_file", arguments->stored,
                                        "Stored results: a path, with * in the file's name");
  app->add_option("--log_file", arguments->logs,
                  "Inference logs: a path, with * in the file's name")
      ->needs(stored);
  app->add_option("--atol", arguments->tolerance.atol,
                  "Absolute tolerance (default 0.001; with --dynamic less for small values)");
  app->add_option("--rtol", arguments->tolerance.rtol, "Relative tolerance (default 0.001)");
  CLI::Option* dynamic_option = app->add_option("--dynamic", arguments->dynamic_path,
                                                "Log (or .npy) of the dynamic inference");
  app->add_option("--static", arguments->static_path,
                  "Log (or .npy) of the exported model's inference on the same input")
      ->needs(dynamic_option);
  CLI::Option* base = app->add_option("--base", arguments->base, "Store of the earlier run");
  app->add_option("--current", arguments->current, "Store of the run to judge")->needs(base);
  app->add_option("--loss-rtol", arguments->thresholds.loss_rtol,
                  "Relative tolerance of each loss (default 0.001)");
  app->add_option("--slower", arguments->thresholds.speed,
                  "Share of speed that may be lost (default 0.1)");
  app->add_option("--larger", arguments->thresholds.memory,
                  "Share of memory that may be added (default 0.1)");
  return {app, [arguments] { return compare(*arguments); }};
}

Verb add_chain_report(CLI::App& chain) {
  const auto arguments = std::make_shared<ReportArguments>();
  CLI::App* app = chain.add_subcommand("report", "Write the latest run of a store as an HTML page");
  app->add_option("STORE", arguments->store, "The store: chain.db")->required();
  app->add_option("-o,--out", arguments->out, "File of the page (default chain.html)");
  app->add_option("--budget", arguments->budget,
                  "Time budget of the whole model in seconds (default 900)");
  app->add_option("--goldens", arguments->goldens,
                  "Folder of the golden files that the page compares with (default goldens)");
  return {app, [arguments] { return report(*arguments); }};
}

Verb add_chain_remote(CLI::App& chain) {
  const auto arguments = std::make_shared<RemoteArguments>();
  CLI::App* app = chain.add_subcommand(
      "remote", "Run one model of a campaign on this machine (`assay run` starts it)");
  app->add_option("--lost-limit", arguments->lost,
                  "Seconds without a byte on stdin after which the model is ended (default 15)");
  app->add_option("WORDS", arguments->words, "After --: run FILE MODE …")->required();
  return {app, [arguments] { return remote(*arguments); }};
}

Verb add_chain_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("chain", "Run training and inference chains (TIPC)");
  return one_of(*app, {add_chain_check(*app), add_chain_run(*app), add_chain_fleet(*app),
                       add_chain_node(*app), add_chain_remote(*app), add_chain_compare(*app),
                       add_chain_speed(*app), add_chain_record(*app), add_chain_judge(*app),
                       add_chain_report(*app)});
}

}  // namespace assay::cli::full
