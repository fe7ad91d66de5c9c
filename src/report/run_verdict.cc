#include "report/run_verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "base/text.h"

namespace assay {
namespace {

std::uint64_t cases_of(const RunReport& report, Outcome outcome) {
  return report.outcomes[static_cast<std::size_t>(outcome)];
}

bool has_verdict(const OutcomeInfo& outcome) {
  return outcome.definite && outcome.outcome != Outcome::no_kernel;
}

std::uint64_t judged_cases(const RunReport& report, bool self_only) {
  std::uint64_t judged = self_only ? cases_of(report, Outcome::self_only) : 0;
  for (const OutcomeInfo& outcome : kOutcomes) {
    if (has_verdict(outcome)) judged += cases_of(report, outcome.outcome);
  }
  return judged;
}

// "3 crash, 1 skip": the outcomes that `wanted` takes.
template <typename Wanted>
std::string list_outcomes(const RunReport& report, const Wanted& wanted) {
  std::vector<std::string> words;
  for (const OutcomeInfo& outcome : kOutcomes) {
    const std::uint64_t cases = cases_of(report, outcome.outcome);
    if (cases > 0 && wanted(outcome)) words.push_back(fmt::format("{} {}", cases, outcome.name));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

RunVerdict by_failures(const RunReport& report, bool strict) {
  std::uint64_t failed = strict ? report.flaky : 0;
  for (const OutcomeInfo& outcome : kOutcomes) {
    if (outcome.failed) failed += cases_of(report, outcome.outcome);
  }
  if (failed == 0) {
    return {RunVerdict::Kind::passes,
            fmt::format("none of {} failed", count_of(report.cases, "case"))};
  }
  std::string which = list_outcomes(report, [](const OutcomeInfo& each) { return each.failed; });
  if (strict && report.flaky > 0) {
    which += fmt::format("{}{} flaky", which.empty() ? "" : ", ", report.flaky);
  }
  return {RunVerdict::Kind::fails,
          fmt::format("{} of {} failed: {}", failed, count_of(report.cases, "case"), which)};
}

RunVerdict by_comparison(const RunComparison& comparison) {
  std::vector<std::string> worse;
  const auto add = [&](std::uint64_t count, std::string_view one, std::string_view many) {
    if (count > 0) worse.push_back(fmt::format("{} {}", count, count == 1 ? one : many));
  };
  add(comparison.count(FaultState::added), "new fault", "new faults");
  add(comparison.count(FaultState::grown), "fault that grew", "faults that grew");
  add(comparison.speed.count(Speed::slow), "slower part", "slower parts");
  add(comparison.lost.size(), "loss of coverage", "losses of coverage");
  RunVerdict verdict;
  if (comparison.worse()) {
    verdict.kind = RunVerdict::Kind::fails;
  } else if (!comparison.lost.empty()) {
    verdict.kind = RunVerdict::Kind::not_judged;
  }
  verdict.reason =
      fmt::format("{} against {}; {} known, {} fixed",
                  worse.empty() ? "nothing is worse" : fmt::format("{}", fmt::join(worse, ", ")),
                  comparison.past, comparison.count(FaultState::known), comparison.fixed.size());
  return verdict;
}

}  // namespace

std::string RunVerdict::line(const Terminal& terminal) const {
  const auto said = [&](Paint paint, std::string_view word) {
    return terminal.wrap(fmt::format("{}: {}", terminal.paint(paint, word), reason));
  };
  switch (kind) {
    case Kind::passes:
      return said(Paint::green, "passes");
    case Kind::fails:
      return said(Paint::red, "fails");
    case Kind::not_judged:
      break;
  }
  return said(Paint::yellow, "not judged");
}

RunVerdict verdict_of(const RunReport& report, const RunComparison* comparison, bool any_failure,
                      bool strict, bool self_only) {
  RunVerdict verdict = comparison == nullptr || any_failure ? by_failures(report, strict)
                                                            : by_comparison(*comparison);
  if (verdict.kind == RunVerdict::Kind::passes && comparison != nullptr &&
      !comparison->lost.empty()) {
    verdict = by_comparison(*comparison);
    verdict.kind = RunVerdict::Kind::not_judged;
  }
  if (verdict.kind == RunVerdict::Kind::passes && judged_cases(report, self_only) == 0 &&
      report.cases > 0) {
    verdict.kind = RunVerdict::Kind::not_judged;
    verdict.reason = fmt::format(
        "no case got a verdict: {}",
        list_outcomes(report, [](const OutcomeInfo& each) { return !has_verdict(each); }));
  }
  if (const std::uint64_t alone = cases_of(report, Outcome::self_only); alone > 0 && !self_only) {
    if (verdict.kind == RunVerdict::Kind::passes) verdict.kind = RunVerdict::Kind::not_judged;
    verdict.reason += fmt::format("; {} compared only with {} (--allow=self_only accepts this)",
                                  count_of(alone, "case"), alone == 1 ? "itself" : "themselves");
  }
  if (report.unfinished > 0) {
    if (verdict.kind == RunVerdict::Kind::passes) verdict.kind = RunVerdict::Kind::not_judged;
    verdict.reason += fmt::format("; {} not finished", count_of(report.unfinished, "case"));
  }
  return verdict;
}

}  // namespace assay
