#include "cli/gate.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "cli/exit_code.h"
#include "lane/fork_server.h"
#include "report/load_past.h"

namespace assay {
namespace {

bool any_failed(const RunReport& report, bool strict) {
  for (const OutcomeInfo& outcome : kOutcomes) {
    if (outcome.failed && report.outcomes[static_cast<std::size_t>(outcome.outcome)] > 0) {
      return true;
    }
  }
  return strict && report.flaky > 0;
}

// Whether there are cases and none of them got a verdict.
bool nothing_judged(const RunReport& report) {
  std::uint64_t judged = 0;
  for (const OutcomeInfo& outcome : kOutcomes) {
    const bool verdict = outcome.definite && outcome.outcome != Outcome::no_kernel;
    if (verdict) judged += report.outcomes[static_cast<std::size_t>(outcome.outcome)];
  }
  return judged == 0 && report.cases > 0;
}

}  // namespace

void add_gate_options(CLI::App& app, GateOptions& options, const std::string& usual) {
  app.add_option("--against", options.against,
                 "Compare with a past run (its folder or database), a baseline file, or known: the "
                 "faults of the run's frameworks that assay ships");
  app.add_option(
      "--fail-on", options.fail_on,
      fmt::format("What makes the exit code 1: new (faults that --against does not know, or that "
                  "grew), any, none (default: new with --against, else {})",
                  usual));
  app.add_flag("--strict", options.strict, "A flaky case counts as a failure");
}

Result<Gate> Gate::open(const GateOptions& options, const std::string& usual) {
  Gate gate;
  gate.strict_ = options.strict;
  gate.fail_on_ = options.fail_on;
  if (gate.fail_on_.empty()) gate.fail_on_ = options.against.empty() ? usual : "new";
  if (gate.fail_on_ != "new" && gate.fail_on_ != "any" && gate.fail_on_ != "none") {
    return usage_error("--fail-on takes new, any or none, not " + gate.fail_on_);
  }
  if (options.against == kShippedFaults) {
    ASSAY_TRY(const LanePackage package, LanePackage::find());
    gate.shipped_ = package.python_path / "assay" / "known_faults";
  } else if (!options.against.empty()) {
    ASSAY_TRY(gate.past_, load_past(options.against));
  } else if (gate.fail_on_ == "new") {
    return usage_error("--fail-on=new: name with --against what was there before");
  }
  return gate;
}

Result<std::optional<RunComparison>> Gate::compare(RunReader& run) const {
  if (!shipped_.empty()) {
    ASSAY_TRY(const auto properties, run.properties());
    ASSAY_TRY(const PastRun shipped, load_shipped_faults(shipped_, properties));
    ASSAY_TRY(RunComparison comparison, compare_runs(run, shipped, strict_));
    return comparison;
  }
  if (!past_) return std::nullopt;
  ASSAY_TRY(RunComparison comparison, compare_runs(run, *past_, strict_));
  return comparison;
}

int Gate::code(const RunReport& report, const std::optional<RunComparison>& comparison) const {
  if (fail_on_ == "none") return kAllGood;
  const bool failed =
      fail_on_ == "any" ? any_failed(report, strict_) : comparison && comparison->worse();
  if (failed) return kSomeFailed;
  const bool lost = comparison && !comparison->lost.empty();
  return lost || nothing_judged(report) ? kNothingJudged : kAllGood;
}

}  // namespace assay
