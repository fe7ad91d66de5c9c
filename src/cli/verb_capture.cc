#include <fmt/format.h>

#include <CLI/Validators.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/process.h"
#include "cli/settings.h"
#include "cli/verbs.h"
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
  assay blame --deep new.deep old.deep        two runs of assay capture --deep FILE
Exit code: 0 no operator is to blame, 1 some are, 2 usage, 4 no call has a verdict.)";

struct ModuleOptions {
  std::vector<std::string> words;  // of the Python module
  std::vector<std::string> program;
  std::string torch_python;
  std::string settings_file;
};

// Runs `main()` of a module of assay.capture, which needs Python's standard library only.
Result<int> run_module(const std::string& module, const ModuleOptions& options) {
  ASSAY_TRY(const LanePackage package, LanePackage::find());
  ASSAY_TRY(const Settings settings, load_settings(options.settings_file));
  ASSAY_TRY(const std::string self, own_executable());
  const FrameworkConfig config = settings.framework("torch", options.torch_python);
  SpawnOptions spawn;
  spawn.argv = python_command(config.python, "assay.capture." + module);
  spawn.argv.push_back("--assay=" + self);
  spawn.argv.insert(spawn.argv.end(), options.words.begin(), options.words.end());
  if (!options.torch_python.empty()) {
    spawn.argv.push_back("--torch_python=" + options.torch_python);
  }
  if (!options.settings_file.empty()) spawn.argv.push_back("--settings=" + options.settings_file);
  spawn.argv.emplace_back("--");
  spawn.argv.insert(spawn.argv.end(), options.program.begin(), options.program.end());
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

void add_blame_options(CLI::App& app, ModuleOptions& options) {
  pass_option(app, options.words, "--test-lane",
              "The lane in question: a [lanes.NAME] of assay.toml, or FRAMEWORK[:DEVICE] (default: "
              "the framework of the program)");
  pass_option(app, options.words, "--reference-lane",
              "The lane whose float64 is trusted, and whose errors are compared (default: torch)");
  pass_option(
      app, options.words, "--values",
      "Value regimes, as in assay api (default: usual, exact, layout, constant, and observed "
      "if the capture has summaries)");
  pass_option(app, options.words, "--log_dir", "Folder of the run (default: CORPUS.blame)");
  pass_option(app, options.words, "-n,--num_workers_per_gpu", "Workers; -1: as many as useful")
      ->default_str("-1");
  pass_flag(app, options.words, "--json", "Print the ranking as JSON");
  app.add_option("--torch_python", options.torch_python,
                 "Python interpreter that has PyTorch (default: that of the program)");
  pass_option(app, options.words, "--paddle_python",
              "Python interpreter that has Paddle (default: that of the program)");
  app.add_option("--settings", options.settings_file, "Settings file; otherwise assay.toml");
}

}  // namespace

Verb add_capture_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "capture", "Run a program and write the calls that it makes to PyTorch or Paddle as cases");
  auto options = std::make_shared<ModuleOptions>();
  std::vector<std::string>& words = options->words;
  pass_option(*app, words, "--out", "The corpus")->default_str("corpus.txt");
  pass_option(*app, words, "--steps",
              "Capture in these steps only: 10,20. A step ends when the first optimizer steps");
  pass_option(*app, words, "--ranks", "Capture in these ranks only: 0,1");
  pass_option(*app, words, "--level",
              "api: public calls; dispatch: operators of PyTorch's dispatcher, also of backward "
              "passes, which is slower: choose --steps")
      ->check(CLI::IsMember({"api", "dispatch"}))
      ->default_str("api");
  pass_flag(*app, words, "--summaries",
            "Also write ranges and counts of the tensors' values, and the first NaN");
  pass_option(*app, words, "--deep",
              "Also write what leaves each module, step by step, to this file");
  pass_flag(*app, words, "--judge",
            "Then judge the calls and rank them, as assay blame; with --summaries");
  app->option_defaults()->group("With --judge");
  add_blame_options(*app, *options);
  app->option_defaults()->group("Options");
  app->add_option("PROGRAM", options->program, "The program and its arguments, after --");
  app->footer(kCaptureExamples);
  return {app, [options] { return run_module("command", *options); }};
}

Verb add_blame_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "blame", "Judge the calls of a capture and rank the operators that are wrong");
  auto options = std::make_shared<ModuleOptions>();
  app->add_option("CORPUS", options->program,
                  "What assay capture has written; with --deep two files")
      ->required();
  pass_flag(*app, options->words, "--deep",
            "Compare two runs by what left their modules (assay capture --deep)");
  add_blame_options(*app, *options);
  app->footer(kBlameExamples);
  return {app, [options] { return run_module("blame", *options); }};
}

}  // namespace assay
