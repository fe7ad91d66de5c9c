#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "base/terminal.h"
#include "base/text.h"
#include "cli/verbs.h"
#include "report/run_report.h"
#include "report/text_logs.h"
#include "serve/report_page.h"
#include "store/merge.h"
#include "store/open_store.h"

namespace assay {
namespace {

constexpr const char* kMergeExamples = R"(Examples:
  assay api --api_config_file=cases.txt --shard=1/2 --log_dir=one     (on one machine)
  assay api --api_config_file=cases.txt --shard=2/2 --log_dir=two     (on another)
  assay merge all one two
Exit code: 0 merged; 1 merged, and runs disagree on some cases; 2 usage.)";

struct MergeOptions {
  std::filesystem::path out;
  std::vector<std::filesystem::path> runs;
};

void print(const MergeSummary& merged) {
  for (const MergeConflict& conflict : merged.conflicts) {
    show(stdout, "conflict: {} in {} (kept), {} in {}: {}\n", name(conflict.kept),
         conflict.kept_from, name(conflict.other), conflict.other_from, one_line(conflict.text));
  }
  for (const std::string& shard : merged.missing_shards) {
    show(stdout, "note: none of these runs has part {} of the corpus\n", shard);
  }
  show(stdout, "{} cases", merged.cases);
  if (merged.repeated > 0) show(stdout, "; {} were in more than one run", merged.repeated);
  if (merged.unfinished > 0) show(stdout, "; {} have not finished", merged.unfinished);
  show(stdout, "\n");
}

Result<int> run_merge(const MergeOptions& options) {
  ASSAY_TRY(const MergeSummary merged, merge_runs(options.out, options.runs));
  print(merged);
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(options.out, StoreMode::existing));
  ASSAY_CHECK(export_text_logs(*store, options.out));
  ASSAY_CHECK(
      write_report_page(*store, {.file = options.out / "report.html", .folder = options.out}));
  ASSAY_TRY(const RunReport report, load_report(*store));
  show(stdout, "\n{}results: {}\n", outcome_table(report, options.out.string()),
       options.out.string());
  return merged.conflicts.empty() ? kAllGood : kSomeFailed;
}

}  // namespace

Verb add_merge_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("merge", "Make one run of several, each case once");
  auto options = std::make_shared<MergeOptions>();
  app->add_option("OUT", options->out, "Folder of the new run")->required();
  app->add_option("DIR", options->runs, "Folders of the runs (their --log_dir)")->required();
  app->footer(kMergeExamples);
  return {app, [options] { return run_merge(*options); }};
}

}  // namespace assay
