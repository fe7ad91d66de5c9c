#include "cli/full/chain_rehearse.h"

#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/process.h"
#include "base/terminal.h"
#include "base/text.h"
#include "chain/script/doubts.h"
#include "cli/exit_code.h"

namespace assay::cli::full {

using namespace chain;

void add_script_options(CLI::App& app, ScriptArguments& arguments, CLI::Option* dry_run) {
  CLI::Option* by_script = app.add_flag(
      "--by-script", arguments.by_script,
      "With --dry-run: rehearse the suite's own script, shut in, and print what it starts");
  by_script->needs(dry_run);
  app.add_option("--script", arguments.request.script,
                 "The script to rehearse (default: the suite's for this file and mode)")
      ->needs(by_script);
  app.add_flag("--trust-script", arguments.request.trusted,
               "Rehearse the script also where the kernel cannot shut it in")
      ->needs(by_script);
}

Result<plan::Plan> rehearsed_plan(script::ScriptRequest request) {
  ASSAY_TRY(const std::string self, own_executable());
  request.shim = std::filesystem::path(self).replace_filename("assay-shim").string();
  return script::plan_by_script(request);
}

Result<int> check_by_rehearsal(const std::vector<std::string>& files, const std::string& mode,
                               bool trusted) {
  bool good = true;
  for (const std::string& file : files) {
    script::ScriptRequest request;
    request.params_file = file;
    request.mode = mode;
    request.trusted = trusted;
    const auto plan = rehearsed_plan(std::move(request));
    if (!plan && plan.error().kind != ErrorKind::usage) return tl::unexpected(plan.error());
    const std::vector<std::string> doubts =
        plan ? script::doubts_about(*plan) : std::vector<std::string>{plan.error().message};
    for (const std::string& doubt : doubts) show(stderr, "{}: {}\n", file, doubt);
    good = good && doubts.empty();
    if (doubts.empty()) {
      show(stdout, "{}: good (its script starts {})\n", file,
           count_of(plan->stages.size(), "command"));
    }
  }
  return good ? kAllGood : kUsage;
}

}  // namespace assay::cli::full
