#include "cli/gate.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <array>

#include "cli/choices.h"
#include "cli/verb.h"
#include "lane/fork_server.h"
#include "report/past.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 3> kFailOn{"new", "any", "none"};
constexpr std::array<std::string_view, 1> kAllow{name(Outcome::self_only)};

}  // namespace

void add_gate_options(CLI::App& app, GateOptions& options, const std::string& usual) {
  app.add_option("--against", options.against,
                 "Compare with a past run (its folder or database), a baseline file, or known: the "
                 "faults of the run's frameworks that assay ships")
      ->check(not_empty());
  app.add_option(
      "--fail-on", options.fail_on,
      fmt::format("What makes the exit code 1: new (faults that --against does not know, or that "
                  "grew), any, none (default: new with --against, else {})",
                  usual));
  app.add_flag("--strict", options.strict, "A flaky case counts as a failure");
  app.add_option(
      "--allow", options.allow,
      "self_only: cases that were compared only with themselves do not keep the run from "
      "passing");
}

Result<Gate> Gate::open(const GateOptions& options, const std::string& usual) {
  Gate gate;
  gate.strict_ = options.strict;
  if (!options.allow.empty()) ASSAY_CHECK(check_choice("--allow", kAllow, options.allow));
  gate.self_only_ = !options.allow.empty();
  gate.fail_on_ = options.fail_on;
  if (gate.fail_on_.empty()) gate.fail_on_ = options.against.empty() ? usual : "new";
  ASSAY_CHECK(check_choice("--fail-on", kFailOn, gate.fail_on_));
  if (options.against == kShippedFaults) {
    ASSAY_TRY(const LanePackage package, LanePackage::find());
    gate.shipped_ = package.native_path / "known_faults";
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

RunVerdict Gate::verdict(const RunReport& report,
                         const std::optional<RunComparison>& comparison) const {
  return verdict_of(report, comparison ? &*comparison : nullptr, fail_on_ == "any", strict_,
                    self_only_);
}

int Gate::code(const RunVerdict& verdict) const {
  if (fail_on_ == "none") return kAllGood;
  switch (verdict.kind) {
    case RunVerdict::Kind::passes:
      return kAllGood;
    case RunVerdict::Kind::fails:
      return kSomeFailed;
    case RunVerdict::Kind::not_judged:
      break;
  }
  return kNothingJudged;
}

}  // namespace assay
