#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "base/terminal.h"
#include "base/text.h"
#include "case/canonical.h"
#include "cli/verbs.h"
#include "report/repro.h"
#include "store/open_store.h"

namespace assay {
namespace {

struct ReproOptions {
  std::string run;
  std::string wanted;
  std::string out;
};

Result<int> run_repro(const ReproOptions& options) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(options.run, StoreMode::read));
  ASSAY_TRY(const FoundCase found, find_case(*store, options.wanted));
  const std::filesystem::path folder =
      options.out.empty()
          ? std::filesystem::path(options.run) / ("repro_" + format_case_id(found.id))
          : std::filesystem::path(options.out);
  ASSAY_TRY(const Repro repro, write_repro(*store, found, folder));
  for (const std::string& note : repro.notes) show(stderr, "note: {}\n", note);
  show(stdout, "{}\n{} {}\nrun it with the Python that has the framework: python {}\n",
       one_line(found.text), name(found.verdict.outcome), one_line(found.verdict.message),
       repro.script.string());
  return kAllGood;
}

}  // namespace

Verb add_repro_verb(CLI::App& parent) {
  CLI::App* app =
      parent.add_subcommand("repro", "A script that runs one case of a run again without assay");
  auto options = std::make_shared<ReproOptions>();
  app->add_option("DIR", options->run, "The run's folder (--log_dir)")->required();
  app->add_option("ID", options->wanted,
                  "The case: its id or the beginning of it, or a part of its text")
      ->required();
  app->add_option("--out", options->out,
                  "Folder for the script and its inputs (default: DIR/repro_ID)");
  return {app, [options] { return run_repro(*options); }};
}

}  // namespace assay
