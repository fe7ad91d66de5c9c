#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/atomic_file.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/api_config.h"
#include "cli/api_options.h"
#include "cli/api_progress.h"
#include "cli/choices.h"
#include "cli/fresh_folder.h"
#include "cli/gate.h"
#include "cli/shrinking.h"
#include "cli/verbs.h"
#include "engine/engine.h"
#include "report/findings.h"
#include "report/inputs.h"
#include "report/junit.h"
#include "report/markdown.h"
#include "report/performance.h"
#include "report/repro.h"
#include "report/run_report.h"
#include "report/text_logs.h"
#include "report/tolerances.h"
#include "serve/report_page.h"
#include "store/open_store.h"

namespace assay {
namespace {

constexpr const char* kExamples = R"(Examples:
  assay api --api_config='paddle.abs(Tensor([2, 3], "float32"))' --accuracy=True
  assay api cases.txt -n 2 --log_dir=out --junit=out/junit.xml
  assay api --log_dir=out --retest=mismatch,crash
  assay api --last-failed -x
Exit code: 0 no verdict failed (with --shard: the part is done), 1 some verdict failed (see --fail-on),
2 usage, 3 the engine or the machine failed, 4 nothing was judged or coverage fell, 5 --log_dir has a
run of another build, 130 interrupted.)";
constexpr const char* kUsualGateOfApi = "any";

struct ClosedRun {
  RunReport report;
  std::optional<RunComparison> comparison;
  std::vector<std::string> notes;
  std::vector<std::string> unwritten;  // why files could not be written
};

struct MarkdownFile {
  std::filesystem::path file;
  std::string folder;  // of the run
};

Status write_markdown(RunReader& run, const MarkdownFile& to, const RunReport& report,
                      const RunVerdict& verdict, const RunComparison* compared) {
  ASSAY_TRY(std::vector<Finding> findings, findings_of(run, compared, kFailuresOfPage));
  ASSAY_CHECK(add_elements(run, findings));
  return write_file(to.file, markdown_summary({report, verdict, findings, compared, to.folder}));
}

// A line for each of the cases that took longest in their slot.
Result<std::string> slowest(RunReader& run, std::size_t most) {
  std::multimap<std::uint64_t, std::string> longest;
  ASSAY_CHECK(run.each({.records = false}, [&](const FinishedCase& finished) -> Status {
    longest.emplace(finished.took_us, finished.text);
    if (longest.size() > most) longest.erase(longest.begin());
    return {};
  }));
  std::string lines = "the slowest cases:";
  for (auto each = longest.rbegin(); each != longest.rend(); ++each) {
    lines += fmt::format("\n  {:.2f} s  {}", static_cast<double>(each->first) / 1e6,
                         one_line(each->second));
  }
  return lines;
}

// Takes lanes, mode and seed from a run, unless the command line names them.
Status take_from(const std::string& run, ApiOptions& options) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(run, StoreMode::read));
  ASSAY_TRY(auto of, store->properties());
  const auto take = [](std::string& option, const std::string& usual, const std::string& stored) {
    if (option == usual && !stored.empty()) option = stored;
  };
  const std::string lane = of[std::string(kRerunFlag) + "test-lane"];
  take(options.test_lane, "", lane.empty() ? of["test.framework"] : lane);
  take(options.reference_lane, ApiOptions().reference_lane,
       of[std::string(kRerunFlag) + "reference-lane"]);
  const auto named = [](const auto& mode) { return mode.second; };
  if (!of["mode"].empty() && std::ranges::none_of(options.modes, named)) {
    options.modes[of["mode"]] = true;
  }
  std::uint64_t& seed = options.settings.seed;
  if (seed == wire::CaseSettingsT().seed) seed = run_seed(of).value_or(seed);
  return {};
}

// Makes --last-failed the same as --retest for a folder.
Status choose_last_failed(ApiOptions& options) {
  if (!options.last_failed) return {};
  options.retest = "True";
  if (!options.store.empty()) return {};
  if (!options.log_dir.empty()) return take_from(options.log_dir, options);
  std::error_code error;
  for (const auto& run : std::filesystem::directory_iterator("assay-runs", error)) {
    options.log_dir = std::max(options.log_dir, run.path().string());
  }
  if (!options.log_dir.empty()) return take_from(options.log_dir, options);
  return usage_error("--last-failed: assay-runs/ has no run; name one with --log_dir");
}

// Writes the files of the run that `options` ask for, each whether or not others could be.
void write_files(const ApiOptions& options, const RunConfig& config, const Gate& gate,
                 RunReader& run, ClosedRun& closed) {
  const std::filesystem::path& folder = config.folder;
  const auto keep = [&](const auto& written) {
    if (!written) closed.unwritten.push_back(written.error().message);
  };
  if (options.test_tol) keep(write_tolerances(run, folder));
  if (options.bitwise_alignment) {
    const auto share = write_bitwise(run, folder);
    keep(share);
    if (share) {
      closed.notes.push_back(fmt::format("{} of {} APIs have equal bits; bitwise.csv has the rest",
                                         share->equal, share->apis));
    }
  }
  if (mode_of(config).agreement == Agreement::stable) keep(write_stability(run, folder));
  if (mode_of(config).agreement == Agreement::speed) keep(write_performance(run, folder));
  if (options.generate_failed_tests) {
    keep(write_failed_tests(run, folder,
                            [&](const std::string& note) { closed.notes.push_back(note); }));
  }
  keep(export_text_logs(run, folder));
  const RunComparison* compared = closed.comparison ? &*closed.comparison : nullptr;
  if (!options.junit.empty()) {
    keep(write_junit(run, {options.gate.strict, compared}, options.junit));
  }
  if (!options.markdown.empty()) {
    keep(write_markdown(run, {options.markdown, folder.string()}, closed.report,
                        gate.verdict(closed.report, closed.comparison), compared));
  }
  if (options.durations > 0) {
    auto lines = slowest(run, options.durations);
    keep(lines);
    if (lines) closed.notes.push_back(std::move(*lines));
  }
  keep(write_report_page(run, {.file = folder / "report.html",
                               .folder = folder,
                               .against = compared,
                               .verdict = gate.verdict(closed.report, closed.comparison)}));
}

// Writes the files of the run and reads its report.
Result<ClosedRun> close_run(const ApiOptions& options, const RunConfig& config, const Gate& gate,
                            RunReader& run) {
  ClosedRun closed;
  ASSAY_TRY(closed.report, load_report(run));
  ASSAY_TRY(closed.comparison, gate.compare(run));
  write_files(options, config, gate, run, closed);
  return closed;
}

// The same for a run that was interrupted or had nothing left to do.
Result<ClosedRun> close_stored(const ApiOptions& options, const RunConfig& config,
                               const Gate& gate) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(store_of(config), StoreMode::read));
  return close_run(options, config, gate, *store);
}

}  // namespace

Result<int> run_api(ApiOptions options) {
  ASSAY_CHECK(choose_last_failed(options));
  ASSAY_TRY(const Gate gate, Gate::open(options.gate, kUsualGateOfApi));
  std::vector<std::string> notes;
  ASSAY_TRY(const RunConfig config, make_run_config(options, notes));
  ApiProgress progress(config, options.quiet, options.show_runtime_status, options.verbose);
  for (const std::string& note : notes) progress.note(note);
  RunObserver observer = progress.observer();
  // Runs while slots and servers end, which takes some seconds on GPUs.
  std::optional<Result<ClosedRun>> complete;
  observer.complete = [&](RunReader& run) { complete = close_run(options, config, gate, run); };
  bool another_build = false;
  observer.another_build = [&] { another_build = true; };
  auto ran = run_in(FreshFolder(config.folder), config, observer);
  if (!ran && another_build) {
    (void)report_error(ran.error());
    return kAnotherBuild;
  }
  ASSAY_TRY(const RunSummary summary, std::move(ran));
  ASSAY_TRY(const ClosedRun closed,
            complete ? std::move(*complete) : close_stored(options, config, gate));
  progress.finish(summary, closed.report, closed.comparison ? &*closed.comparison : nullptr);
  for (const std::string& note : closed.notes) progress.note(note);
  for (const std::string& why : closed.unwritten) show_line(stderr, "assay: " + why);
  if (options.shrink && summary.ending == RunEnding::complete) {
    const auto note = [&](const std::string& line) { progress.note(line); };
    ASSAY_TRY([[maybe_unused]] const ShrunkCases shrunk,
              shrink_stored(config.folder.string(), {}, {}, note));
  }
  if (closed.comparison)
    show_painted(stdout, comparison_table(*closed.comparison, progress.terminal()));
  const RunVerdict verdict = gate.verdict(closed.report, closed.comparison);
  show_painted(stdout, verdict.line(progress.terminal()) + "\n");
  if (summary.ending == RunEnding::interrupted) return kInterrupted;
  if (!closed.unwritten.empty()) return kTrouble;
  if (config.shard && summary.ending == RunEnding::complete) return kAllGood;
  return gate.code(verdict);
}

Verb add_api_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "api", "Run API cases: Paddle against PyTorch, or one build against another");
  auto options = std::make_shared<ApiOptions>();
  add_files(*app, *options);
  add_api_options(*app, *options);
  app->option_defaults()->group("Result");
  app->add_option("--junit", options->junit, "Write JUnit XML to this file")->check(not_empty());
  app->add_option("--markdown", options->markdown, "Write a job summary in Markdown to this file")
      ->check(not_empty());
  app->add_option("--durations", options->durations, "Print this many of the slowest cases")
      ->check(whole_number());
  add_gate_options(*app, options->gate, kUsualGateOfApi);
  app->option_defaults()->group("Options");
  app->footer(kExamples);
  return {app, [options] { return run_api(*options); }};
}

}  // namespace assay
