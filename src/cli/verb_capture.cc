#include "cli/verb_capture.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/process.h"
#include "cli/exit_code.h"
#include "cli/settings.h"
#include "lane/python_command.h"

namespace assay {
namespace {

constexpr const char* kCaptureExamples = R"(Examples:
  assay capture --out corpus.txt -- python train.py
  assay capture --out corpus.txt --steps 10,20 --ranks 0 -- torchrun --nproc-per-node=2 train.py
  assay api corpus.txt --test-lane=torch
  assay capture --judge --test-lane=mine -- python train.py     then as assay blame
  assay capture --out corpus.txt        after a kill: makes one file of what the processes wrote
Exit code: that of the program; 2 usage; 4 no call was seen.)";
constexpr const char* kBlameExamples = R"(Examples:
  assay blame corpus.txt --test-lane=new --reference-lane=old
Exit code: 0 no operator is to blame, 1 some are, 2 usage, 4 no call has a verdict.)";

struct BlameOptions {
  std::string corpus;
  std::string test_lane;
  std::string reference_lane;
  std::string values = "usual,exact,layout,constant";
  std::string log_dir;
  std::string torch_python;
  std::string paddle_python;
  std::string settings_file;
  int workers = -1;
  bool json = false;
};

struct CaptureOptions {
  std::string out = "corpus.txt";
  std::string steps;
  std::string ranks;
  std::string level = "api";
  bool observed = false;
  bool judge = false;
  BlameOptions blame;
  std::vector<std::string> program;
};

// Runs `main()` of a module of assay.capture, which needs Python's standard library only.
Result<int> run_module(const std::string& module, const BlameOptions& options,
                       const std::vector<std::string>& words) {
  ASSAY_TRY(const LanePackage package, LanePackage::find());
  ASSAY_TRY(const Settings settings, load_settings(options.settings_file));
  ASSAY_TRY(const std::string self, own_executable());
  const FrameworkConfig config = settings.framework("torch", options.torch_python);
  SpawnOptions spawn;
  spawn.argv = python_command(config.python, "assay.capture." + module);
  spawn.argv.push_back("--assay=" + self);
  spawn.argv.insert(spawn.argv.end(), words.begin(), words.end());
  spawn.environment = {"PYTHONPATH=" + package.python_path.string()};
  if (const char* path = std::getenv("PYTHONPATH"); path != nullptr) {
    spawn.environment.push_back(fmt::format("ASSAY_PROGRAM_PYTHONPATH={}", path));
  }
  spawn.fds = {{0, 0}};
  spawn.new_group = false;        // so that Ctrl-C reaches the program
  spawn.die_with_parent = false;  // so that it merges what the program has written
  ASSAY_TRY(Process process, Process::spawn(spawn));
  ASSAY_TRY(const ExitStatus status, process.wait());
  return status.signal == 0 ? status.code : kTrouble;
}

// The words of assay.capture.blame that the options mean.
std::vector<std::string> words_of(const BlameOptions& options) {
  std::vector<std::string> words = {"--test-lane=" + options.test_lane,
                                    "--reference-lane=" + options.reference_lane,
                                    "--values=" + options.values, "--log_dir=" + options.log_dir};
  if (options.json) words.emplace_back("--json");
  const auto pass_on = [&](const char* flag, const std::string& value) {
    if (!value.empty()) words.push_back(fmt::format("--pass-on={}={}", flag, value));
  };
  pass_on("--torch_python", options.torch_python);
  pass_on("--paddle_python", options.paddle_python);
  pass_on("--settings", options.settings_file);
  if (options.workers >= 0) pass_on("--num_workers_per_gpu", std::to_string(options.workers));
  return words;
}

Result<int> run_capture(const CaptureOptions& options) {
  std::vector<std::string> words = {"--out=" + options.out, "--steps=" + options.steps,
                                    "--ranks=" + options.ranks, "--level=" + options.level};
  if (options.observed) words.emplace_back("--values=observed");
  if (options.judge) {
    words.emplace_back("--judge");
    for (const std::string& word : words_of(options.blame)) words.push_back("--pass-on=" + word);
  }
  words.emplace_back("--");
  words.insert(words.end(), options.program.begin(), options.program.end());
  return run_module("command", options.blame, words);
}

Result<int> run_blame(const BlameOptions& options) {
  std::vector<std::string> words = words_of(options);
  words.push_back("--corpus=" + options.corpus);
  return run_module("blame", options, words);
}

void add_blame_options(CLI::App& app, BlameOptions& options) {
  app.add_option(
      "--test-lane", options.test_lane,
      "The lane in question: a [lanes.NAME] of assay.toml, or FRAMEWORK[:DEVICE] (default: "
      "the framework of the program)");
  app.add_option("--reference-lane", options.reference_lane,
                 "The lane whose float64 is trusted (default: torch)");
  app.add_option("--values", options.values, "Value regimes, as in assay api")
      ->capture_default_str();
  app.add_option("--log_dir", options.log_dir, "Folder of the run (default: CORPUS.blame)");
  app.add_option("-n,--num_workers_per_gpu", options.workers, "Workers; -1: as many as useful");
  app.add_flag("--json", options.json, "Print the ranking as JSON");
  app.add_option("--torch_python", options.torch_python,
                 "Python interpreter that has PyTorch (default: that of the program)");
  app.add_option("--paddle_python", options.paddle_python,
                 "Python interpreter that has Paddle (default: that of the program)");
  app.add_option("--settings", options.settings_file, "Settings file; otherwise assay.toml");
}

}  // namespace

Verb add_capture_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "capture", "Run a program and write the calls that it makes to PyTorch or Paddle as cases");
  auto options = std::make_shared<CaptureOptions>();
  app->add_option("--out", options->out, "The corpus")->capture_default_str();
  app->add_option("--steps", options->steps,
                  "Capture in these steps only: 10,20. A step ends when the first optimizer steps");
  app->add_option("--ranks", options->ranks, "Capture in these ranks only: 0,1");
  app->add_option(
         "--level", options->level,
         "api: public calls; dispatch: operators of PyTorch's dispatcher, also of backward "
         "passes, which is slower: choose --steps")
      ->check(CLI::IsMember({"api", "dispatch"}))
      ->capture_default_str();
  app->add_flag("--summaries", options->observed,
                "Also write ranges and counts of the tensors' values, and the first NaN");
  app->add_flag("--judge", options->judge, "Then judge the calls and rank them, as assay blame");
  app->option_defaults()->group("With --judge");
  add_blame_options(*app, options->blame);
  app->option_defaults()->group("Options");
  app->add_option("PROGRAM", options->program, "The program and its arguments, after --");
  app->footer(kCaptureExamples);
  return {app, [options] { return run_capture(*options); }};
}

Verb add_blame_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "blame", "Judge the calls of a capture and rank the operators that are wrong");
  auto options = std::make_shared<BlameOptions>();
  app->add_option("CORPUS", options->corpus, "What assay capture has written")->required();
  add_blame_options(*app, *options);
  app->footer(kBlameExamples);
  return {app, [options] { return run_blame(*options); }};
}

}  // namespace assay
