#include "cli/verb_corpus.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/terminal.h"
#include "case/corpus.h"
#include "cli/exit_code.h"
#include "cli/settings.h"
#include "lane/fork_server.h"

namespace assay {
namespace {

constexpr std::chrono::hours kLongest{2};

struct OpInfoOptions {
  std::string dtypes = "float32,float64,bfloat16,float16,complex64,int64";
  std::string ops;
  std::string torch_python;
  std::string settings_file;
  std::string framework = "torch";
};

// Runs assay.torch_cases.opinfo in the lane's interpreter, with our output.
Result<int> write_opinfo(const OpInfoOptions& chosen) {
  ASSAY_TRY(const LanePackage package, LanePackage::find());
  ASSAY_TRY(const Settings settings, load_settings(chosen.settings_file));
  const FrameworkConfig config = settings.framework("torch", chosen.torch_python);
  SpawnOptions options = module_command(config, package, "assay.torch_cases.opinfo");
  for (const std::string& word : {std::string("--dtypes"), chosen.dtypes, "--ops=" + chosen.ops}) {
    options.argv.push_back(word);
  }
  options.environment.emplace_back("PYTHONHASHSEED=0");  // the database iterates over sets
  options.fds = {{STDOUT_FILENO, STDOUT_FILENO}, {STDERR_FILENO, STDERR_FILENO}};
  ASSAY_TRY(Process process, Process::spawn(options));
  ASSAY_TRY(const ExitStatus status, process.wait_at_most(kLongest));
  if (status.ok()) return kAllGood;
  if (status.code == kUsage) return usage_error("--ops or --dtypes: see the line above");
  return fail(fmt::format("{} wrote no cases: {}", config.python, status.describe()));
}

void add_flags(CLI::App& opinfo, OpInfoOptions& chosen) {
  opinfo.add_option("--framework", chosen.framework, "The framework whose database is read")
      ->check(CLI::IsMember({"torch"}))
      ->capture_default_str();
  opinfo.add_option("--dtypes", chosen.dtypes, "Dtypes, separated by commas")
      ->capture_default_str();
  opinfo.add_option("--ops", chosen.ops, "A regular expression that the names of ops contain");
  opinfo.add_option("--torch_python", chosen.torch_python, "Python with PyTorch and expecttest");
  opinfo.add_option("--settings", chosen.settings_file, "Settings file; otherwise assay.toml");
}

}  // namespace

Verb add_corpus_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("corpus", "Check corpus files, or write one from OpInfo");
  app->require_subcommand(1);
  CLI::App* check = app->add_subcommand("check", "Parse every line and print those that are wrong");
  auto files = std::make_shared<std::vector<std::string>>();
  check->add_option("FILE", *files, "Files, or patterns of files such as 'corpus/*.txt'")
      ->required();
  CLI::App* opinfo =
      app->add_subcommand("opinfo", "Write the cases that PyTorch's own OpInfo database describes");
  auto chosen = std::make_shared<OpInfoOptions>();
  add_flags(*opinfo, *chosen);
  return {app, [files, opinfo, chosen]() -> Result<int> {
            if (opinfo->parsed()) return write_opinfo(*chosen);
            ASSAY_TRY(const CorpusCheck found,
                      check_corpus(*files, [](std::string_view text) { show_text(stdout, text); }));
            return found.failed == 0 ? kAllGood : kSomeFailed;
          }};
}

}  // namespace assay
