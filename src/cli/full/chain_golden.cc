#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/terminal.h"
#include "chain/history/record.h"
#include "cli/full/verbs.h"

namespace assay::cli::full {

using namespace chain;

namespace {

namespace fs = std::filesystem;
using history::State;

struct RecordArguments {
  std::string store;
  std::string folder = "goldens";
  std::string purpose = "nightly";
  history::RecordOptions options;
};

struct JudgeArguments {
  std::vector<std::string> paths;
  bool json = false;
};

// 1: a regression, or a metric is missing; 4: more runs are needed; else 0.
int exit_code_of(const std::vector<history::MetricJudgement>& all) {
  int code = kAllGood;
  for (const history::MetricJudgement& one : all) {
    const State state = one.judgement.state;
    if (one.missing || state == State::regression) return kSomeFailed;
    if (state == State::suspect || state == State::shifted) code = kNothingJudged;
  }
  return code;
}

bool is_good(const history::MetricJudgement& one) {
  return !one.missing && one.judgement.state == State::good;
}

// All lines, or those that are not good with the number of the others.
void show_lines(const history::Golden& golden, const std::vector<history::MetricJudgement>& all,
                bool every) {
  show(stdout, "{} {} on {}, build {}: {} of {} metrics good\n", golden.model, golden.mode,
       golden.device, golden.runs.empty() ? "none" : golden.runs.back().build,
       std::ranges::count_if(all, is_good), all.size());
  for (const history::MetricJudgement& one : all) {
    if (every || !is_good(one)) show(stdout, "  {}\n", history::line_of(one, golden));
  }
}

// The files that a path names: itself, or the golden files of a folder.
Result<std::vector<fs::path>> files_at(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return std::vector<fs::path>{path};
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(path, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (entry->path().extension() == ".json") files.push_back(entry->path());
  }
  if (error) return fail(fmt::format("cannot read {}: {}", path, error.message()));
  if (files.empty()) return usage_error("no golden file in " + path);
  std::ranges::sort(files);
  return files;
}

Result<int> record(RecordArguments& arguments) {
  history::RecordOptions& options = arguments.options;
  if (arguments.purpose == "rerun") options.purpose = history::Purpose::rerun;
  if (arguments.purpose == "baseline") options.purpose = history::Purpose::baseline;
  if (options.accept && options.purpose != history::Purpose::nightly) {
    return usage_error("--accept is for a nightly run");
  }
  ASSAY_TRY(results::ChainStore store,
            results::ChainStore::open(arguments.store, OpenMode::existing));
  ASSAY_TRY(history::Golden run, history::measured(store, options));
  ASSAY_TRY(const history::Golden golden, history::add_to(arguments.folder, std::move(run)));
  const std::vector<history::MetricJudgement> all = history::judge_golden(golden);
  show_lines(golden, all, true);
  return exit_code_of(all);
}

Result<int> judge(const JudgeArguments& arguments) {
  int code = kAllGood;
  nlohmann::json list = nlohmann::json::array();
  for (const std::string& path : arguments.paths) {
    ASSAY_TRY(const std::vector<fs::path> files, files_at(path));
    for (const fs::path& file : files) {
      ASSAY_TRY(const history::Golden golden, history::load_golden(file));
      const std::vector<history::MetricJudgement> all = history::judge_golden(golden);
      const int own = exit_code_of(all);
      if (code != kSomeFailed && own != kAllGood) code = own;
      if (!arguments.json) {
        show_lines(golden, all, false);
        continue;
      }
      nlohmann::json metrics = nlohmann::json::array();
      for (const history::MetricJudgement& one : all)
        metrics.push_back(history::json_of(one, golden));
      list.push_back({{"file", file.string()},
                      {"model", golden.model},
                      {"mode", golden.mode},
                      {"device", golden.device},
                      {"metrics", std::move(metrics)}});
    }
  }
  if (arguments.json) {
    show(stdout, "{}\n", dumped(list));
  }
  return code;
}

}  // namespace

Verb add_chain_record(CLI::App& chain) {
  CLI::App* app = chain.add_subcommand(
      "record", "Add the latest run of a store to its model's golden record, and judge it");
  const auto arguments = std::make_shared<RecordArguments>();
  app->add_option("STORE", arguments->store, "The store: chain.db")->required();
  app->add_option("--goldens", arguments->folder, "Folder of the golden files (default goldens)");
  app->add_option("--as", arguments->purpose,
                  "nightly; rerun: the same build again; baseline: an earlier build, to confirm a "
                  "change (default nightly)")
      ->check(CLI::IsMember({"nightly", "rerun", "baseline"}));
  app->add_option("--build", arguments->options.build,
                  "Name of the build (default: Paddle's version beside the interpreter)");
  app->add_flag("--accept", arguments->options.accept,
                "The values of this run are right: they are golden from now on");
  return {app, [arguments] { return record(*arguments); }};
}

Verb add_chain_judge(CLI::App& chain) {
  CLI::App* app =
      chain.add_subcommand("judge", "Judge the last night of golden records, metric by metric");
  const auto arguments = std::make_shared<JudgeArguments>();
  app->add_option("PATH", arguments->paths, "Golden files, or folders of them")->required();
  app->add_flag("--json", arguments->json, "Print a JSON array");
  return {app, [arguments] { return judge(*arguments); }};
}

}  // namespace assay::cli::full
