#include "cli/full/chain_check.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <utility>

#include "base/fd.h"
#include "base/process.h"
#include "base/terminal.h"
#include "chain/params/params.h"
#include "chain/script/doubts.h"
#include "chain/script/script_plan.h"
#include "cli/exit_code.h"

namespace assay::cli::full {

using namespace chain;

namespace {

// Counts of one suite and kind, for the table at the end.
struct CheckCount {
  int good = 0;
  int refused = 0;
};
using CheckTable = std::map<std::pair<std::string, std::string>, CheckCount>;

void print_table(const CheckTable& table) {
  CheckCount all;
  show(stdout, "{:<18} {:<18} {:>6} {:>8}\n", "suite", "kind", "good", "refused");
  for (const auto& [name, count] : table) {
    show(stdout, "{:<18} {:<18} {:>6} {:>8}\n", name.first, name.second, count.good, count.refused);
    all.good += count.good;
    all.refused += count.refused;
  }
  show(stdout, "{:<37} {:>6} {:>8}\n", "all", all.good, all.refused);
}

// The mode in which a file is rehearsed, by its name.
std::string mode_of(const std::string& file) {
  struct Known {
    std::string_view word;
    std::string_view mode;
  };
  constexpr std::array<Known, 8> kModes{{{"serving", "serving_infer"},
                                         {"paddle2onnx", "paddle2onnx_infer"},
                                         {"lite_arm", "lite_infer"},
                                         {"ptq", "whole_infer"},
                                         {"kl_quant", "whole_infer"},
                                         {"pipeline", "pipeline_infer"},
                                         {"cpp", "cpp_infer"},
                                         {".sh", "benchmark_train"}}};
  const std::string name = std::filesystem::path(file).filename().string();
  for (const Known& known : kModes) {
    if (name.find(known.word) != std::string::npos) return std::string(known.mode);
  }
  return "lite_train_lite_infer";
}

// Checks a file by what its own script starts. No dialect is needed.
params::CheckedFile check_by_rehearsal(const script::ScriptRequest& request) {
  params::CheckedFile checked{false, "unknown", "rehearsed", request.mode, ""};
  const auto plan = script::read_script(request).and_then(
      [&](const script::Script& script) { return script::rehearsed_plan(script, request); });
  std::vector<std::string> doubts =
      plan ? script::doubts_about(*plan) : std::vector<std::string>{plan.error().message};
  checked.good = doubts.empty();
  if (plan) doubts.insert(doubts.end(), plan->warnings.begin(), plan->warnings.end());
  for (const std::string& doubt : doubts) {
    checked.told += fmt::format("{}{}: {}{}", checked.told.empty() ? "" : "\n", request.params_file,
                                checked.good ? "warning: " : "", doubt);
  }
  return checked;
}

// Checks a file by the rules of its suite if they are known: assay has read this very script, or
// there is none and the file's contents decide. Otherwise by a rehearsal.
Result<params::CheckedFile> checked(const std::string& file, const CheckArguments& arguments,
                                    const params::Dialects& dialects) {
  ASSAY_TRY(const std::string self, own_executable());
  script::ScriptRequest request;
  request.params_file = file;
  request.mode = arguments.mode.empty() ? mode_of(file) : arguments.mode;
  request.shim = shim_beside(self);
  request.trusted = arguments.trusted;
  const std::string path = script::find_script(request);
  params::Origin origin{file, arguments.dialect.name, &dialects};
  const bool own_rules = !arguments.dialect.name.empty() || !arguments.dialect.file.empty();
  if (path.empty() || (own_rules && arguments.mode.empty())) return params::check_file(origin);
  const std::string hash = params::hash_of(read_file(path).value_or(""));
  origin.dialect = dialects.suite_of_script(hash);
  if (origin.dialect.empty() || !arguments.mode.empty()) return check_by_rehearsal(request);
  return params::check_file(origin);
}

}  // namespace

void add_dialect_options(CLI::App& app, DialectArguments& arguments) {
  CLI::Option* name =
      app.add_option("--dialect", arguments.name,
                     "The suite of the params files: PaddleClas, PaddleSeg, … (default: detected)");
  app.add_option("--dialect-file", arguments.file,
                 "Read the files by this dialect file alone: a suite of your own")
      ->excludes(name);
}

Result<const params::Dialects*> dialects_of(const DialectArguments& arguments,
                                            std::optional<params::Dialects>& own) {
  if (arguments.file.empty()) return &params::Dialects::known();
  ASSAY_TRY(own, params::Dialects::of_file(arguments.file));
  return &*own;
}

std::string shim_beside(const std::string& assay) {
  return std::filesystem::path(assay).replace_filename("assay-shim").string();
}

Result<int> check(const CheckArguments& arguments) {
  std::optional<params::Dialects> own;
  ASSAY_TRY(const params::Dialects* dialects, dialects_of(arguments.dialect, own));
  CheckTable table;
  bool good = true;
  for (const std::string& file : arguments.files) {
    ASSAY_TRY(const params::CheckedFile one, checked(file, arguments, *dialects));
    if (!one.told.empty()) show(stderr, "{}\n", one.told);
    CheckCount& count = table[{one.suite, one.kind}];
    ++(one.good ? count.good : count.refused);
    good = good && one.good;
    if (one.good) {
      show(stdout, "{}: good ({} of {}; modes {})\n", file, one.kind, one.suite, one.modes);
    }
  }
  if (arguments.files.size() > 1) print_table(table);
  return good ? kAllGood : kUsage;
}

CLI::App* add_check(CLI::App& chain, CheckArguments& arguments) {
  CLI::App* app = chain.add_subcommand("check", "Check params files without running them");
  app->add_option("FILE", arguments.files, "Params files, or launching scripts (.sh)")->required();
  add_dialect_options(*app, arguments.dialect);
  app->add_option("--rehearse", arguments.mode,
                  "Check by a rehearsal of the files' own scripts in this mode, also where the "
                  "suite's rules are known");
  app->add_flag("--trust-script", arguments.trusted,
                "Rehearse scripts also where the kernel cannot shut them in");
  return app;
}

}  // namespace assay::cli::full
