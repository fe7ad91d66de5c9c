#include "cli/verb_report.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "cli/exit_code.h"
#include "report/html.h"
#include "report/junit.h"
#include "report/run_report.h"
#include "report/text_logs.h"
#include "store/open_store.h"

namespace assay {
namespace {

struct ReportOptions {
  std::string folder;
  bool json = false;
  std::string junit;
  std::string html;
  std::string list;
  bool logs = false;
};

Status list_outcome(Store& store, const std::string& text) {
  const auto wanted = find_outcome(text);
  if (!wanted) {
    std::string known;
    for (const OutcomeInfo& outcome : kOutcomes) known += fmt::format(" {}", outcome.name);
    return usage_error(fmt::format("--list: no outcome is called {}; there are{}", text, known));
  }
  if (*wanted == Outcome::invalid) {
    ASSAY_CHECK(store.each_invalid([](const InvalidLine& line) -> Status {
      fmt::print("{}\n", line.text);
      return {};
    }));
  }
  return store.each_finished([&](const FinishedCase& finished) -> Status {
    if (finished.verdict.outcome == *wanted) fmt::print("{}\n", finished.text);
    return {};
  });
}

Result<int> run_report(const ReportOptions& options) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(options.folder, StoreMode::existing));
  if (!options.junit.empty()) ASSAY_CHECK(write_junit(*store, options.junit));
  if (!options.html.empty()) ASSAY_CHECK(write_html_report(*store, options.html));
  if (options.logs && is_store_address(options.folder)) {
    return usage_error("--logs writes into the folder of a run, and this one is in a database");
  }
  if (options.logs) ASSAY_CHECK(export_text_logs(*store, options.folder));
  if (!options.list.empty()) {
    ASSAY_CHECK(list_outcome(*store, options.list));
    return kAllGood;
  }
  ASSAY_TRY(const RunReport report, load_report(*store));
  if (options.json) {
    fmt::print("{}", json_report(report));
  } else if (options.junit.empty() && options.html.empty()) {
    fmt::print("{}\n{}", outcome_table(report), api_table(report));
  }
  return kAllGood;
}

}  // namespace

Verb add_report_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("report", "What a run came to, from its folder");
  auto options = std::make_shared<ReportOptions>();
  app->add_option("DIR", options->folder,
                  "The run's folder (--log_dir), or postgresql://… (--store)")
      ->required();
  app->add_flag("--json", options->json, "Counts as JSON");
  app->add_option("--junit", options->junit, "Write JUnit XML to this file");
  app->add_option("--html", options->html, "Write a page to this file");
  app->add_option("--list", options->list, "The cases of one outcome, one a line");
  app->add_flag("--logs", options->logs, "Write engineV2's text logs again");
  return {app, [options] { return run_report(*options); }};
}

}  // namespace assay
