#include "cli/verb_api.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "base/terminal.h"
#include "cli/api_config.h"
#include "cli/api_options.h"
#include "cli/api_progress.h"
#include "cli/exit_code.h"
#include "cli/fresh_folder.h"
#include "cli/gate.h"
#include "cli/shrinking.h"
#include "engine/engine.h"
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
  assay api --api_config_file=cases.txt --accuracy=True --num_workers_per_gpu=2 --log_dir=out
  assay api --log_dir=out --retest=mismatch,crash
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

// Writes the files of the run that `options` ask for, each whether or not others could be.
void write_files(const ApiOptions& options, const RunConfig& config, RunReader& run,
                 ClosedRun& closed) {
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
  keep(write_report_page(run, {.file = folder / "report.html",
                               .folder = folder,
                               .against = closed.comparison ? &*closed.comparison : nullptr}));
}

// Writes the files of the run and reads its report.
Result<ClosedRun> close_run(const ApiOptions& options, const RunConfig& config, const Gate& gate,
                            RunReader& run) {
  ClosedRun closed;
  ASSAY_TRY(closed.report, load_report(run));
  ASSAY_TRY(closed.comparison, gate.compare(run));
  write_files(options, config, run, closed);
  return closed;
}

// The same for a run that was interrupted or had nothing left to do.
Result<ClosedRun> close_stored(const ApiOptions& options, const RunConfig& config,
                               const Gate& gate) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(store_of(config), StoreMode::read));
  return close_run(options, config, gate, *store);
}

Result<int> run_api(const ApiOptions& options) {
  ASSAY_TRY(const Gate gate, Gate::open(options.gate, kUsualGateOfApi));
  std::vector<std::string> notes;
  ASSAY_TRY(const RunConfig config, make_run_config(options, notes));
  ApiProgress progress(config, options.quiet, options.show_runtime_status);
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
  progress.finish(summary, closed.report);
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

}  // namespace

Verb add_api_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "api", "Run API cases: Paddle against PyTorch, or one build against another");
  auto options = std::make_shared<ApiOptions>();
  add_api_options(*app, *options);
  app->option_defaults()->group("Result");
  add_gate_options(*app, options->gate, kUsualGateOfApi);
  app->option_defaults()->group("Options");
  app->footer(kExamples);
  return {app, [options] { return run_api(*options); }};
}

}  // namespace assay
