#include "cli/verb_corpus.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/process.h"
#include "base/terminal.h"
#include "case/corpus.h"
#include "cli/exit_code.h"
#include "cli/settings.h"
#include "cli/verb_corpus_tools.h"
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
  std::string out;  // the file for the cases; empty: standard output
};

// Runs a module of assay.torch_cases in the lane's interpreter, with our output.
Result<int> write_cases(const std::string& module, const std::vector<std::string>& words,
                        const OpInfoOptions& chosen) {
  ASSAY_TRY(const LanePackage package, LanePackage::find());
  ASSAY_TRY(const Settings settings, load_settings(chosen.settings_file));
  const FrameworkConfig config = settings.framework("torch", chosen.torch_python);
  SpawnOptions options = module_command(config, package, "assay.torch_cases." + module);
  options.argv.insert(options.argv.end(), words.begin(), words.end());
  options.environment.emplace_back("PYTHONHASHSEED=0");  // OpInfo's database iterates over sets
  std::optional<AtomicFile> file;
  if (!chosen.out.empty()) {
    ASSAY_TRY(file, AtomicFile::create(chosen.out));
  }
  options.fds = {{file ? file->fd() : STDOUT_FILENO, STDOUT_FILENO},
                 {STDERR_FILENO, STDERR_FILENO}};
  ASSAY_TRY(Process process, Process::spawn(options));
  ASSAY_TRY(const ExitStatus status, process.wait_at_most(kLongest));
  if (status.ok() && file) ASSAY_CHECK(file->commit());
  if (status.ok()) return kAllGood;
  if (status.code == kUsage) return usage_error("no cases: see the line above");
  return fail(fmt::format("{} wrote no cases: {}", config.python, status.describe()));
}

struct DeriveOptions {
  std::vector<std::string> files;
  std::vector<std::string> flags;  // with their values
};

// The flags of assay.torch_cases.derive, which checks them.
void add_derive_flags(CLI::App& app, DeriveOptions& wanted) {
  app.add_option("FILE", wanted.files, "A corpus, or two captures for --size")->required();
  const auto pass_on = [&](const char* flag, const char* help) {
    app.add_option_function<std::string>(
        flag, [&, flag](const std::string& value) { wanted.flags.push_back(flag + ("=" + value)); },
        help);
  };
  const auto pass_flag = [&](const char* flag, const char* help) {
    app.add_flag_callback(
        flag, [&, flag] { wanted.flags.emplace_back(flag); }, help);
  };
  pass_on("--sizes", "The sizes of the two captures, such as 128,256");
  pass_on("--size", "The size that is wanted");
  pass_flag("--zero-size", "An axis of each case becomes empty");
  pass_on("--big", "An axis of each case becomes larger by this factor");
  pass_on("--dtype", "Floating-point tensors get this dtype");
  pass_flag("--layout", "The last two axes change places in memory");
  pass_flag("--broadcast", "An axis of a tensor behind the first becomes 1");
}

std::vector<std::string> words_of(const DeriveOptions& wanted) {
  std::vector<std::string> words = wanted.flags;
  words.emplace_back("--");
  words.insert(words.end(), wanted.files.begin(), wanted.files.end());
  return words;
}

void add_interpreter(CLI::App& app, OpInfoOptions& chosen) {
  app.add_option("--torch_python", chosen.torch_python,
                 "Python with PyTorch (OpInfo: and expecttest)");
  app.add_option("--settings", chosen.settings_file, "Settings file; otherwise assay.toml");
}

void add_flags(CLI::App& opinfo, OpInfoOptions& chosen) {
  opinfo.add_option("--framework", chosen.framework, "The framework whose database is read")
      ->check(CLI::IsMember({"torch"}))
      ->capture_default_str();
  opinfo.add_option("--dtypes", chosen.dtypes, "Dtypes, separated by commas")
      ->capture_default_str();
  opinfo.add_option("--ops", chosen.ops, "A regular expression that the names of ops contain");
  add_interpreter(opinfo, chosen);
}

Result<int> write_opinfo(const OpInfoOptions& chosen) {
  return write_cases("opinfo", {"--dtypes", chosen.dtypes, "--ops=" + chosen.ops}, chosen);
}

}  // namespace

Verb add_corpus_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("corpus", "Check, make, combine and describe corpus files");
  app->require_subcommand(1);
  CLI::App* check = app->add_subcommand("check", "Parse every line and print those that are wrong");
  auto files = std::make_shared<std::vector<std::string>>();
  check->add_option("FILE", *files, "Files, or patterns of files such as 'corpus/*.txt'")
      ->required();
  CLI::App* opinfo =
      app->add_subcommand("opinfo", "Write the cases that PyTorch's own OpInfo database describes");
  auto chosen = std::make_shared<OpInfoOptions>();
  add_flags(*opinfo, *chosen);
  CLI::App* import =
      app->add_subcommand("import", "Write the cases of operator traces that others publish");
  auto trace = std::make_shared<std::string>();
  import
      ->add_option("PATH", *trace,
                   "A trace of tritonbench (.txt), BackendBench (.parquet) or GraphNet (model.py), "
                   "or a folder")
      ->required();
  import->add_option("--out", chosen->out, "Write the cases to this file");
  add_interpreter(*import, *chosen);
  CLI::App* derive = app->add_subcommand(
      "derive", "Cases of sizes, dtypes and layouts that nobody ran, from captures or a corpus");
  auto wanted = std::make_shared<DeriveOptions>();
  add_derive_flags(*derive, *wanted);
  derive->add_option("--out", chosen->out, "Write the cases to this file");
  add_interpreter(*derive, *chosen);
  const std::vector<Verb> tools = add_corpus_tools(*app);
  return {app, [files, opinfo, import, derive, chosen, trace, wanted, tools]() -> Result<int> {
            for (const Verb& tool : tools) {
              if (tool.app->parsed()) return tool.run();
            }
            if (opinfo->parsed()) return write_opinfo(*chosen);
            if (derive->parsed()) return write_cases("derive", words_of(*wanted), *chosen);
            if (import->parsed()) return write_cases("traces", {"--", *trace}, *chosen);
            ASSAY_TRY(const CorpusCheck found,
                      check_corpus(*files, [](std::string_view text) { show_text(stdout, text); }));
            return found.failed == 0 ? kAllGood : kSomeFailed;
          }};
}

}  // namespace assay
