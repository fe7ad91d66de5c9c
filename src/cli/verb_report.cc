#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/fd.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/choices.h"
#include "cli/gate.h"
#include "cli/settings.h"
#include "cli/verbs.h"
#include "lane/fork_server.h"
#include "report/annotations.h"
#include "report/baseline.h"
#include "report/filtered_run.h"
#include "report/findings.h"
#include "report/junit.h"
#include "report/markdown.h"
#include "report/rejudge.h"
#include "report/run_report.h"
#include "report/scorecard.h"
#include "report/text_logs.h"
#include "serve/report_page.h"
#include "store/open_store.h"

namespace assay {
namespace {

struct ReportOptions {
  std::string folder;
  bool json = false;
  std::string format = "text";
  std::vector<std::string> corpus;
  std::string junit;
  std::string html;
  std::string list;
  std::string baseline;
  std::optional<std::string> judge;  // a file of policies; empty: those of this assay
  JudgeBy judge_by;
  bool logs = false;
  bool every_failure = false;
  bool passing = false;
  bool scorecard = false;
  std::string filter;  // -k
  GateOptions gate;
};

// A report reads this many failed cases of each outcome for its findings, so that it takes seconds
// even for millions of failures. Later failures rarely add a finding.
constexpr std::uint64_t kReadFailures = 20'000;

// `assay report` tells what came of a run; that something failed is no failure of the telling.
constexpr const char* kUsualGateOfReport = "none";
constexpr std::array<std::string_view, 5> kReportFormats{"text", "json", "sarif", "github",
                                                         "markdown"};

Status list_flagged(RunReader& run, OutcomeFlag flag) {
  return run.each({.records = false}, [flag](const FinishedCase& finished) -> Status {
    if ((finished.verdict.flags & flag) != 0) show_line(stdout, finished.text);
    return {};
  });
}

Status list_cases(RunReader& run, const std::string& text) {
  if (const auto flag = find_flag(text)) return list_flagged(run, *flag);
  ASSAY_TRY(const Outcome wanted, chosen_outcome("--list", text));
  if (wanted == Outcome::invalid) {
    ASSAY_CHECK(run.each_invalid([](const InvalidLine& line) -> Status {
      show_line(stdout, line.text);
      return {};
    }));
  }
  const RunQuery query{.rows = RunQuery::Rows::outcome, .outcome = wanted, .records = false};
  return run.each(query, [](const FinishedCase& finished) -> Status {
    show_line(stdout, finished.text);
    return {};
  });
}

// A note that lists the outcomes with failed cases that were not read.
std::string unread_failures(const RunReport& report, std::uint64_t most) {
  std::string text;
  for (const OutcomeInfo& outcome : kOutcomes) {
    const std::uint64_t cases = report.outcomes[static_cast<std::size_t>(outcome.outcome)];
    if (!outcome.failed || outcome.outcome == Outcome::invalid || cases <= most) continue;
    text +=
        fmt::format("{}the first {} of {} {}", text.empty() ? "" : ", ", most, cases, outcome.name);
  }
  if (text.empty()) return text;
  return fmt::format("findings are those of {} (--every-failure reads all)\n", text);
}

Status write_known(RunReader& run, const std::string& file) {
  ASSAY_TRY(const WrittenBaseline written, write_baseline(run, file));
  show(stderr, "{}: {}\n", file, count_of(written.faults, "known fault"));
  for (const FaultKey& key : written.gone) {
    show(stderr, "  no longer there: {} {}, {}: {}\n", name(key.outcome), key.api, key.where,
         key.how);
  }
  return {};
}

// Prints the run's scorecard, and how it differs from that of --against. Returns it.
Result<nlohmann::json> print_scorecard(const ReportOptions& options, RunReader& run) {
  ASSAY_TRY(const Settings settings, load_settings({}));
  const FrameworkConfig python = settings.framework("torch", {});
  ASSAY_TRY(nlohmann::json card, scorecard_of(run, python));
  std::vector<std::string> changes;
  if (!options.gate.against.empty()) {
    ASSAY_TRY(const auto past, open_store(options.gate.against, StoreMode::read));
    ASSAY_TRY(const nlohmann::json before, scorecard_of(*past, python));
    changes = changes_of(before, card);
    card["changes"] = changes;
  }
  const bool json = options.format == "json";
  show(stdout, "{}",
       json ? json_text(card) : score_table(card, changes, options.format == "markdown"));
  return card;
}

// Writes the files that the options name.
Status write_files(const ReportOptions& options, const RunVerdict& verdict, RunReader& run,
                   const RunComparison* compared, const nlohmann::json& card) {
  if (!options.junit.empty()) {
    ASSAY_CHECK(write_junit(run, {options.gate.strict, compared}, options.junit));
  }
  if (!options.html.empty()) {
    ASSAY_CHECK(
        write_report_page(run, {.file = options.html,
                                .folder = is_store_address(options.folder) ? "" : options.folder,
                                .against = compared,
                                .most = options.every_failure ? kAllOfThem : kFailuresOfPage,
                                .verdict = verdict,
                                .scores = card.is_null() ? card : score_rows(card)}));
  }
  if (!options.baseline.empty()) ASSAY_CHECK(write_known(run, options.baseline));
  if (options.logs) ASSAY_CHECK(export_text_logs(run, options.folder));
  return {};
}

// For people, with the verdict last: a terminal shows the end.
void print_text(const ReportOptions& options, const RunReport& report, const RunVerdict& verdict,
                const std::vector<Finding>& findings, const RunComparison* compared) {
  const Terminal terminal = Terminal::of(STDOUT_FILENO);
  show_painted(stdout, findings_table(findings, compared != nullptr, terminal));
  if (compared != nullptr) {
    const auto worse = [](const Finding& each) { return each.state != FaultState::known; };
    const auto listed = static_cast<std::uint64_t>(std::ranges::count_if(findings, worse));
    const bool all_listed =
        listed >= compared->count(FaultState::added) + compared->count(FaultState::grown);
    show_painted(stdout, "\n" + comparison_table(*compared, terminal, !all_listed));
  }
  const bool only_files =
      !options.junit.empty() || !options.html.empty() || !options.baseline.empty();
  if (!only_files) {
    show_painted(stdout, fmt::format("\n{}\n{}", outcome_table(report, options.folder, terminal),
                                     api_table(report, options.passing, terminal)));
    if (options.passing) show_painted(stdout, known_deviation_table(report, terminal));
  }
  show_painted(stdout, "\n" + verdict.line(terminal) + "\n");
}

// The report on standard output.
Status print_report(const ReportOptions& options, const RunReport& report,
                    const RunVerdict& verdict, const std::vector<Finding>& findings,
                    const RunComparison* compared) {
  ASSAY_TRY(const CorpusPlaces places, CorpusPlaces::read(options.corpus));
  if (options.format == "json") {
    nlohmann::json object = json_report(report);
    object["findings"] = findings_json(findings);
    if (compared != nullptr) object["against"] = comparison_json(*compared);
    show(stdout, "{}", json_text(object));
  } else if (options.format == "sarif") {
    show(stdout, "{}", sarif_log(findings, places, compared != nullptr, ASSAY_VERSION));
  } else if (options.format == "github") {
    show(stdout, "{}", github_annotations(findings, places, verdict, compared));
  } else if (options.format == "markdown") {
    const bool in_folder = !is_store_address(options.folder);
    show(stdout, "{}",
         markdown_summary(
             {report, verdict, findings, compared, in_folder ? options.folder : std::string()}));
  } else {
    print_text(options, report, verdict, findings, compared);
  }
  return {};
}

// The run with the verdicts of --judge.
Result<std::unique_ptr<RunReader>> judged_again(const ReportOptions& options, RunReader& stored) {
  JudgeBy by = options.judge_by;
  std::filesystem::path file = *options.judge;
  if (file.empty()) {
    ASSAY_TRY(const LanePackage package, LanePackage::find());
    file = package.python_path / "assay" / "policies.toml";
  }
  by.policies_name = file.string();
  auto text = read_file(file);
  if (!text) return usage_error("--judge: " + text.error().message);
  by.policies = std::move(*text);
  return RejudgedRun::make(stored, by);
}

Result<int> run_report(ReportOptions options) {
  if (options.json) options.format = "json";
  ASSAY_CHECK(check_choice("--format", kReportFormats, options.format));
  std::optional<NameFilter> filter;
  if (!options.filter.empty()) {
    ASSAY_TRY(filter, NameFilter::parse(options.filter));
    if (options.logs) return usage_error("--logs writes the logs of all cases: leave out -k");
  }
  ASSAY_TRY(const Gate gate, Gate::open(options.gate, kUsualGateOfReport));
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(options.folder, StoreMode::read));
  if (options.logs && is_store_address(options.folder)) {
    return usage_error("--logs writes into the folder of a run, and this one is in a database");
  }
  std::unique_ptr<RunReader> again;
  if (options.judge) {
    ASSAY_TRY(again, judged_again(options, *store));
  } else if (options.judge_by.atol || options.judge_by.rtol) {
    return usage_error("--atol and --rtol: give --judge as well");
  }
  std::optional<FilteredRun> part;
  if (filter) part.emplace(again ? *again : *store, *filter);
  RunReader& run = part ? *part : again ? *again : *store;
  ASSAY_TRY(const std::optional<RunComparison> comparison, gate.compare(run));
  const RunComparison* compared = comparison ? &*comparison : nullptr;
  ASSAY_TRY(const RunReport report, load_report(run));
  const RunVerdict verdict = gate.verdict(report, comparison);
  nlohmann::json card;
  if (options.scorecard) {
    ASSAY_TRY(card, print_scorecard(options, run));
  }
  ASSAY_CHECK(write_files(options, verdict, run, compared, card));
  if (options.scorecard) return gate.code(verdict);
  if (!options.list.empty()) {
    ASSAY_CHECK(list_cases(run, options.list));
    return kAllGood;
  }
  if (filter && report.cases + report.unfinished == 0) {
    return usage_error(fmt::format("-k: no case of the run matches {}", options.filter));
  }
  const std::uint64_t most = options.every_failure ? kAllOfThem : kReadFailures;
  ASSAY_TRY(std::vector<Finding> findings, findings_of(run, compared, most));
  ASSAY_CHECK(add_elements(run, findings));
  show(stderr, "{}", unread_failures(report, most));
  if (!is_store_address(options.folder)) {
    ASSAY_TRY(const ShrunkCases shrunk, read_shrunk(options.folder));
    add_shrunk(shrunk, findings);
  }
  ASSAY_CHECK(print_report(options, report, verdict, findings, compared));
  return gate.code(verdict);
}

}  // namespace

Verb add_report_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("report", "What a run came to, from its folder");
  auto options = std::make_shared<ReportOptions>();
  app->add_option("DIR", options->folder,
                  "The run's folder (--log_dir), or postgresql://… (--store)")
      ->required();
  app->add_option("--format", options->format,
                  "What is printed: text, json, sarif (2.1.0), github (annotations of a workflow), "
                  "markdown (a job summary)")
      ->capture_default_str();
  app->add_flag("--json", options->json, "The same as --format=json");
  app->add_option("--corpus", options->corpus,
                  "Corpus files whose lines annotations and SARIF point to");
  app->add_option("--junit", options->junit, "Write JUnit XML to this file")->check(not_empty());
  app->add_option("--html", options->html, "Write a page to this file")->check(not_empty());
  app->add_option("--list", options->list,
                  "The cases of one outcome or flag (flaky, weak, contaminated), one a line");
  app->add_option("-k,--filter", options->filter,
                  "Only cases whose API name matches: 'softmax and not log'. Parts of names with "
                  "and, or, not and parentheses, as in pytest");
  app->add_flag("--passing", options->passing,
                "List APIs without a failure and known deviations, too");
  app->add_flag("--scorecard", options->scorecard,
                "Which operators of PyTorch's dispatcher are right, wrong, without a kernel, not "
                "judged, by dtype and group; with --against=DIR what has changed");
  app->add_option("--write-baseline", options->baseline,
                  "Write what did not pass to this file, for --against; its comments stay")
      ->check(not_empty());
  app->add_option_function<std::string>(
         "--judge", [options](const std::string& file) { options->judge = file; },
         "Judge every record again, without running: by this file of policies, or by this assay's")
      ->expected(0, 1);
  app->add_option("--atol", options->judge_by.atol,
                  "With --judge: absolute tolerance, instead of the error bar");
  app->add_option("--rtol", options->judge_by.rtol,
                  "With --judge: relative tolerance, instead of the error bar");
  app->add_flag("--every-failure", options->every_failure,
                fmt::format("Read every failed case for the findings, not the first {} of each "
                            "outcome",
                            kReadFailures));
  add_gate_options(*app, options->gate, kUsualGateOfReport);
  app->add_flag("--logs", options->logs, "Write engineV2's text logs again");
  return {app, [options] { return run_report(*options); }};
}

}  // namespace assay
