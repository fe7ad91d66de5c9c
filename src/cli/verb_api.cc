#include "cli/verb_api.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

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
2 usage, 3 the engine or the machine failed, 130 interrupted.)";
constexpr const char* kUsualGateOfApi = "any";

struct ClosedRun {
  RunReport report;
  std::optional<RunComparison> comparison;
};

// Writes the logs and the page of the run, and reads its report.
Result<ClosedRun> close_run(const ApiOptions& options, const RunConfig& config, const Gate& gate,
                            RunReader& run) {
  const std::filesystem::path& folder = config.folder;
  if (options.test_tol) {
    ASSAY_TRY([[maybe_unused]] const ToleranceStats stats, write_tolerances(run, folder));
  }
  if (mode_of(config).agreement == Agreement::stable) ASSAY_CHECK(write_stability(run, folder));
  if (mode_of(config).agreement == Agreement::speed) ASSAY_CHECK(write_performance(run, folder));
  if (options.generate_failed_tests) ASSAY_CHECK(write_failed_tests(run, folder));
  ASSAY_CHECK(export_text_logs(run, folder));
  ClosedRun closed;
  ASSAY_TRY(closed.report, load_report(run));
  ASSAY_TRY(closed.comparison, gate.compare(run));
  ASSAY_CHECK(write_report_page(run, folder / "report.html",
                                closed.comparison ? &*closed.comparison : nullptr));
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
  ASSAY_TRY(const RunSummary summary, run_in(FreshFolder(config.folder), config, observer));
  ASSAY_TRY(const ClosedRun closed,
            complete ? std::move(*complete) : close_stored(options, config, gate));
  progress.finish(summary, closed.report);
  if (options.shrink && summary.ending == RunEnding::complete) {
    const auto note = [&](const std::string& line) { progress.note(line); };
    ASSAY_TRY([[maybe_unused]] const ShrunkCases shrunk,
              shrink_stored(config.folder.string(), {}, {}, note));
  }
  if (closed.comparison)
    fmt::print("{}", comparison_table(*closed.comparison, progress.terminal()));
  const RunVerdict verdict = gate.verdict(closed.report, closed.comparison);
  fmt::print("{}\n", verdict.line(progress.terminal()));
  if (summary.ending == RunEnding::interrupted) return kInterrupted;
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
