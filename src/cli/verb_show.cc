#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "base/terminal.h"
#include "cli/verbs.h"
#include "report/repro.h"
#include "report/run_report.h"
#include "report/shown_case.h"
#include "store/open_store.h"

namespace assay {
namespace {

struct ShowOptions {
  std::string run;
  std::string wanted;
  bool json = false;
};

Result<int> run_show(const ShowOptions& options) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(options.run, StoreMode::read));
  ASSAY_TRY(const FoundCase found, find_planned_case(*store, options.wanted));
  ASSAY_TRY(const auto properties, store->properties());
  const std::string folder = is_store_address(options.run) ? std::string() : options.run;
  ASSAY_TRY(const ShownCase shown, shown_case(properties, found, folder));
  if (options.json) {
    show(stdout, "{}", json_text(shown.json));
  } else {
    show_painted(stdout, case_page(shown, Terminal::of(STDOUT_FILENO)));
  }
  return kAllGood;
}

}  // namespace

Verb add_show_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "show", "One case of a run: its faults with their values, lanes, times and logs");
  auto options = std::make_shared<ShowOptions>();
  app->add_option("DIR", options->run, "The run's folder (--log_dir), or postgresql://… (--store)")
      ->required();
  app->add_option("ID", options->wanted,
                  "The case: its id or text, or a part of either (of an id: the first digits)")
      ->required();
  app->add_flag("--json", options->json, "Print JSON");
  return {app, [options] { return run_show(*options); }};
}

}  // namespace assay
