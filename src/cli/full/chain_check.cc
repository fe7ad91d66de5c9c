#include "cli/full/chain_check.h"

#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <utility>

#include "base/terminal.h"
#include "chain/params/launch_script.h"
#include "chain/params/params.h"
#include "chain/plan/launch_plan.h"
#include "cli/exit_code.h"
#include "cli/full/chain_rehearse.h"

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

// A launching script, as one file of the table.
params::CheckedFile check_launch(const std::string& file) {
  const params::ReadLaunch read = params::read_launch(file);
  return {read.good(), read.script.model_repo.empty() ? "-" : read.script.model_repo, "launch",
          "benchmark_train", params::describe(read.problems)};
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

Result<int> check(const CheckArguments& arguments) {
  if (!arguments.rehearse.empty())
    return check_by_rehearsal(arguments.files, arguments.rehearse, arguments.trusted);
  std::optional<params::Dialects> own;
  ASSAY_TRY(const params::Dialects* dialects, dialects_of(arguments.dialect, own));
  CheckTable table;
  bool good = true;
  for (const std::string& file : arguments.files) {
    const params::CheckedFile checked =
        params::is_launch_script(file)
            ? check_launch(file)
            : params::check_file({file, arguments.dialect.name, dialects});
    if (!checked.told.empty()) show(stderr, "{}\n", checked.told);
    CheckCount& count = table[{checked.suite, checked.kind}];
    if (checked.good) {
      ++count.good;
      show(stdout, "{}: good ({} of {}; modes {})\n", file, checked.kind, checked.suite,
           checked.modes);
      if (arguments.files.size() == 1 && params::is_launch_script(file)) {
        show(stdout, "{}", plan::describe_launch(params::read_launch(file).script));
      }
    } else {
      ++count.refused;
      good = false;
    }
  }
  if (arguments.files.size() > 1) print_table(table);
  return good ? kAllGood : kUsage;
}

CLI::App* add_check(CLI::App& chain, CheckArguments& arguments) {
  CLI::App* app = chain.add_subcommand("check", "Check params files without running them");
  app->add_option("FILE", arguments.files, "Params files, or launching scripts (.sh)")->required();
  add_dialect_options(*app, arguments.dialect);
  CLI::Option* rehearse = app->add_option(
      "--rehearse", arguments.rehearse,
      "Check by a rehearsal of the files' own scripts in this mode, instead of by a dialect");
  app->add_flag("--trust-script", arguments.trusted,
                "Rehearse the scripts also where the kernel cannot shut them in")
      ->needs(rehearse);
  return app;
}

}  // namespace assay::cli::full
