#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/terminal.h"
#include "cli/api_config.h"
#include "cli/api_options.h"
#include "cli/api_progress.h"
#include "cli/fresh_folder.h"
#include "cli/verbs.h"
#include "engine/engine.h"
#include "report/run_report.h"
#include "store/open_store.h"

namespace assay {
namespace {

constexpr const char* kWorkExamples = R"(Examples:
  assay work --store=postgresql://assay@db/runs --num_workers_per_gpu=2
`assay plan` has defined the cases and the mode. SIGTERM gives unfinished cases back.
Exit code: 0 nothing is left to do, whatever the verdicts (see `assay report`); 2 usage; 3 the engine
or the machine failed; 130 interrupted.)";

// Sets the options that define the run, from the flags that the database keeps.
Status read_plan(ApiOptions& options) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(options.store, StoreMode::existing));
  ASSAY_TRY(const auto properties, store->properties());
  CLI::App app;
  add_plan_options(app, options);
  std::vector<std::string> words{"--store=" + options.store};
  for (const std::string& flag : rerun_flags(properties)) {
    if (app.get_option_no_throw(flag.substr(0, flag.find('='))) != nullptr) words.push_back(flag);
  }
  std::reverse(words.begin(), words.end());  // CLI11 takes the last word first
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return usage_error(
        fmt::format("this assay does not know a flag that the run was planned with: {}; use the "
                    "version that planned it",
                    error.what()));
  }
  return {};
}

Result<int> run_work(ApiOptions options) {
  if (!is_store_address(options.store)) {
    return usage_error("--store takes the address of a database: postgresql://…");
  }
  ASSAY_CHECK(read_plan(options));
  std::vector<std::string> notes;
  ASSAY_TRY(const RunConfig config, make_run_config(options, notes));
  ApiProgress progress(config, options.quiet);
  for (const std::string& note : notes) progress.note(note);
  ASSAY_TRY(const RunSummary summary,
            run_in(FreshFolder(config.folder), config, progress.observer()));
  show(stdout, "{} cases by this worker; {}\n", summary.totals.finished,
       summary.ending == RunEnding::interrupted ? "interrupted; unfinished cases are given back"
                                                : "nothing is left to do");
  return summary.ending == RunEnding::interrupted ? kInterrupted : kAllGood;
}

}  // namespace

Verb add_work_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("work", "Run cases of a database, as one of many workers");
  auto options = std::make_shared<ApiOptions>();
  add_work_options(*app, *options);
  app->footer(kWorkExamples);
  return {app, [options] { return run_work(*options); }};
}

}  // namespace assay
