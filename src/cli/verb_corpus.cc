#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/process.h"
#include "base/terminal.h"
#include "case/corpus.h"
#include "cli/settings.h"
#include "cli/verbs.h"
#include "lane/fork_server.h"

namespace assay {
namespace {

constexpr std::chrono::hours kLongest{2};

struct WriterOptions {
  std::vector<std::string> words;  // of the module
  std::vector<std::string> files;
  std::string torch_python;
  std::string settings_file;
  std::string out;  // the file for the cases; empty: standard output
};

// Runs a module of assay.torch_cases in the lane's interpreter, with our output.
Result<int> write_cases(const std::string& module, const WriterOptions& chosen) {
  ASSAY_TRY(const LanePackage package, LanePackage::find());
  ASSAY_TRY(const Settings settings, load_settings(chosen.settings_file));
  const FrameworkConfig config = settings.framework("torch", chosen.torch_python);
  SpawnOptions options = module_command(config, package, "assay.torch_cases." + module);
  options.argv.insert(options.argv.end(), chosen.words.begin(), chosen.words.end());
  if (!chosen.files.empty()) options.argv.emplace_back("--");
  options.argv.insert(options.argv.end(), chosen.files.begin(), chosen.files.end());
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

// The flags of assay.torch_cases.derive, which checks them.
void add_derive_flags(CLI::App& app, std::vector<std::string>& words) {
  pass_option(app, words, "--sizes", "The sizes of the two captures, such as 128,256");
  pass_option(app, words, "--size", "The size that is wanted");
  pass_flag(app, words, "--zero-size", "An axis of each case becomes empty");
  pass_option(app, words, "--big", "An axis of each case becomes larger by this factor");
  pass_option(app, words, "--dtype", "Floating-point tensors get this dtype");
  pass_flag(app, words, "--layout", "The last two axes change places in memory");
  pass_flag(app, words, "--broadcast", "An axis of a tensor behind the first becomes 1");
}

// A subcommand that runs a module of assay.torch_cases. What `files` gets follows the flags.
struct Writer {
  CLI::App* app;
  std::shared_ptr<WriterOptions> options;
};

Writer add_writer(CLI::App& corpus, std::vector<Verb>& verbs, const std::string& module,
                  const std::string& name, const std::string& summary) {
  auto options = std::make_shared<WriterOptions>();
  CLI::App* app = corpus.add_subcommand(name, summary);
  app->add_option("--torch_python", options->torch_python,
                  "Python with PyTorch (OpInfo: and expecttest)");
  app->add_option("--settings", options->settings_file, "Settings file; otherwise assay.toml");
  verbs.push_back({app, [module, options] { return write_cases(module, *options); }});
  return {app, options};
}

void add_writers(CLI::App& corpus, std::vector<Verb>& verbs) {
  const auto out = [](const Writer& writer) {
    writer.app->add_option("--out", writer.options->out, "Write the cases to this file");
  };
  const Writer opinfo = add_writer(corpus, verbs, "opinfo", "opinfo",
                                   "Write the cases that PyTorch's own OpInfo database describes");
  std::vector<std::string>& words = opinfo.options->words;
  opinfo.app->add_option("--framework", "The framework whose database is read")
      ->check(CLI::IsMember({"torch"}))
      ->default_str("torch");
  pass_option(*opinfo.app, words, "--dtypes", "Dtypes, separated by commas")
      ->default_str("float32,float64,bfloat16,float16,complex64,int64");
  pass_option(*opinfo.app, words, "--ops", "A regular expression that the names of ops contain");
  const Writer import = add_writer(corpus, verbs, "traces", "import",
                                   "Write the cases of operator traces that others publish");
  import.app
      ->add_option("PATH", import.options->files,
                   "A trace of tritonbench (.txt), BackendBench (.parquet) or GraphNet (model.py), "
                   "or a folder")
      ->required()
      ->expected(1);
  out(import);
  const Writer derive =
      add_writer(corpus, verbs, "derive", "derive",
                 "Cases of sizes, dtypes and layouts that nobody ran, from captures or a corpus");
  derive.app->add_option("FILE", derive.options->files, "A corpus, or two captures for --size")
      ->required();
  add_derive_flags(*derive.app, derive.options->words);
  out(derive);
}

}  // namespace

Verb add_corpus_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("corpus", "Check, make, combine and describe corpus files");
  CLI::App* check = app->add_subcommand("check", "Parse every line and print those that are wrong");
  auto files = std::make_shared<std::vector<std::string>>();
  check->add_option("FILE", *files, "Files, or patterns of files such as 'corpus/*.txt'")
      ->required();
  std::vector<Verb> verbs{
      {check, [files]() -> Result<int> {
         ASSAY_TRY(const CorpusCheck found,
                   check_corpus(*files, [](std::string_view text) { show_text(stdout, text); }));
         return found.failed == 0 ? kAllGood : kSomeFailed;
       }}};
  add_writers(*app, verbs);
  for (Verb& tool : add_corpus_tools(*app)) verbs.push_back(std::move(tool));
  return one_of(*app, std::move(verbs));
}

}  // namespace assay
