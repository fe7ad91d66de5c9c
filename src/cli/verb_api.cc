#include "cli/verb_api.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "cli/exit_code.h"
#include "engine/engine.h"

namespace assay {
namespace {

struct Options {
  std::vector<std::string> configs;
  std::vector<std::string> files;
  bool accuracy = true;
  std::uint32_t workers = 1;
  std::string log_dir;
  std::string paddle_python = ".venv/paddle/bin/python";
  std::string torch_python = ".venv/torch/bin/python";
};

Result<int> run_api(const Options& options) {
  RunConfig config;
  config.sources = {options.configs, options.files};
  config.test = {"paddle", options.paddle_python, {}};
  config.reference = {"torch", options.torch_python, {}};
  config.folder = options.log_dir;
  config.slots = options.workers;
  config.memory_budget = std::uint64_t{16} << 30;
  RunObserver observer;
  observer.finished = [](const FinishedCase& finished, const Totals&) {
    fmt::print("{:12} {} {}\n    {}\n", name(finished.verdict.outcome),
               describe_mismatch(finished.verdict.mismatch), finished.text,
               finished.verdict.message);
  };
  observer.note = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  ASSAY_TRY(const RunSummary summary, run_engine(config, observer));
  for (const OutcomeInfo& outcome : kOutcomes) {
    const auto count = summary.totals.outcomes[static_cast<std::size_t>(outcome.outcome)];
    if (count > 0) fmt::print("{}: {}\n", outcome.name, count);
  }
  return kAllGood;
}

}  // namespace

Verb add_api_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("api", "Run API cases");
  auto options = std::make_shared<Options>();
  app->add_option("--api_config", options->configs);
  app->add_option("--api_config_file", options->files);
  app->add_flag("--accuracy", options->accuracy);
  app->add_option("--num_workers_per_gpu", options->workers);
  app->add_option("--log_dir", options->log_dir);
  app->add_option("--paddle_python", options->paddle_python);
  app->add_option("--torch_python", options->torch_python);
  return {app, [options] { return run_api(*options); }};
}

}  // namespace assay
