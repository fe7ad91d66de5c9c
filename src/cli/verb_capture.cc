#include "cli/verb_capture.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
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
  assay capture --out corpus.txt        after a kill: makes one file of what the processes wrote
Exit code: that of the program; 2 usage; 4 no call was seen.)";

struct CaptureOptions {
  std::string out = "corpus.txt";
  std::string steps;
  std::string ranks;
  std::string torch_python;
  std::string settings_file;
  std::vector<std::string> program;
};

// Runs assay.capture.command, which needs Python's standard library only.
Result<int> run_capture(const CaptureOptions& options) {
  ASSAY_TRY(const LanePackage package, LanePackage::find());
  ASSAY_TRY(const Settings settings, load_settings(options.settings_file));
  const FrameworkConfig config = settings.framework("torch", options.torch_python);
  SpawnOptions spawn;
  spawn.argv = python_command(config.python, "assay.capture.command");
  for (const std::string& word : {"--out=" + options.out, "--steps=" + options.steps,
                                  "--ranks=" + options.ranks, std::string("--")}) {
    spawn.argv.push_back(word);
  }
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

}  // namespace

Verb add_capture_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "capture", "Run a program and write the calls that it makes to PyTorch or Paddle as cases");
  auto options = std::make_shared<CaptureOptions>();
  app->add_option("--out", options->out, "The corpus")->capture_default_str();
  app->add_option("--steps", options->steps,
                  "Capture in these steps only: 10,20. A step ends when the first optimizer steps");
  app->add_option("--ranks", options->ranks, "Capture in these ranks only: 0,1");
  app->add_option("--torch_python", options->torch_python, "Python that runs assay's own part");
  app->add_option("--settings", options->settings_file, "Settings file; otherwise assay.toml");
  app->add_option("PROGRAM", options->program, "The program and its arguments, after --");
  app->footer(kCaptureExamples);
  return {app, [options] { return run_capture(*options); }};
}

}  // namespace assay
