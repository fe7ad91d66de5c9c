#include "cli/verb_finding.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/terminal.h"
#include "case/canonical.h"
#include "cli/exit_code.h"
#include "report/issue.h"
#include "report/shrunk.h"
#include "store/open_store.h"

namespace assay {
namespace {

struct FindingOptions {
  std::string run;
  std::size_t number = 1;
  std::string script;
};

// The smallest case known that shows the finding.
Result<FoundCase> shown_case(const std::string& folder, RunReader& run, const Finding& finding) {
  ASSAY_TRY(const ShrunkCases shrunk, read_shrunk(folder));
  if (const auto smaller = shrunk.find(finding.id); smaller != shrunk.end()) {
    const ShrunkCase& found = smaller->second;
    return FoundCase{found.id, found.text, found.verdict, found.record};
  }
  ASSAY_TRY(FoundCase found, find_case(run, format_case_id(finding.id)));
  return found;
}

Result<int> run_finding(const FindingOptions& options) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(options.run, StoreMode::read));
  ASSAY_TRY(const auto properties, store->properties());
  ASSAY_TRY(const std::vector<Finding> findings, findings_of(*store, nullptr));
  if (options.number < 1 || options.number > findings.size()) {
    return usage_error(fmt::format("the run has {} findings; assay report {} lists them",
                                   findings.size(), options.run));
  }
  const Finding& finding = findings[options.number - 1];
  ASSAY_TRY(const FoundCase shown, shown_case(options.run, *store, finding));
  ASSAY_TRY(const Issue issue, write_issue(properties, finding, shown));
  show(stdout, "{}", issue.text);
  if (options.script.empty()) return kAllGood;
  if (issue.script.empty()) return usage_error("--script: there is none: " + issue.why);
  ASSAY_CHECK(write_file(options.script, issue.script));
  return kAllGood;
}

}  // namespace

Verb add_finding_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("finding", "A finding of a run as a text for an issue");
  auto options = std::make_shared<FindingOptions>();
  app->add_option("DIR", options->run, "The run's folder (--log_dir)")->required();
  app->add_option("N", options->number, "Its number in the list of assay report")->required();
  app->add_option("--script", options->script, "Write its script to this file as well");
  return {app, [options] { return run_finding(*options); }};
}

}  // namespace assay
