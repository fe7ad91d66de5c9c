#include "report/rejudge.h"

#include <fmt/format.h>

#include "report/run_report.h"
#include "wire/frame.h"
#include "wire/settings.h"

namespace assay {
namespace {

// Flags that come from several attempts at a case and not from its record.
constexpr std::uint8_t kFlagsOfAttempts = kFlaky | kContaminated;

bool wants(const RunQuery& query, const Verdict& verdict) {
  switch (query.rows) {
    case RunQuery::Rows::all:
      return true;
    case RunQuery::Rows::outcome:
      return verdict.outcome == query.outcome;
    case RunQuery::Rows::failed:
      return info(verdict.outcome).failed;
    case RunQuery::Rows::listed:
      return info(verdict.outcome).failed ||
             (verdict.outcome == Outcome::pass && verdict.flags != 0);
  }
  return false;
}

}  // namespace

std::optional<Verdict> Judging::judge(const FinishedCase& finished) const {
  if (finished.record.empty()) return std::nullopt;
  const auto record = wire::open<wire::Record>(finished.record);
  if (!record) return std::nullopt;
  return assay::judge(**record, policies.of_case(finished.text), rules);
}

Result<Judging> judging_by(const JudgeBy& by, std::map<std::string, std::string>& properties) {
  Judging judging;
  ASSAY_TRY(wire::CaseSettingsT settings, wire::settings_of(properties));
  ASSAY_TRY(judging.rules, Rules::of(std::move(settings)));
  Policy policy;
  policy.atol = judging.rules.settings.atol;
  policy.rtol = judging.rules.settings.rtol;
  if (by.atol || by.rtol) {
    policy.atol = by.atol.value_or(policy.atol);
    policy.rtol = by.rtol.value_or(policy.rtol);
    policy.reason = "--atol, --rtol";  // a policy with a reason replaces the error bar
    properties["atol"] = fmt::format("{}", policy.atol);
    properties["rtol"] = fmt::format("{}", policy.rtol);
    properties["error_bar"] = "false";
  }
  const std::string text = by.policies.empty() ? "version = 1\n" : by.policies;
  ASSAY_TRY(judging.policies, Policies::parse(text, by.policies_name, policy));
  properties["version.policies"] = judging.policies.version();
  return judging;
}

Result<std::unique_ptr<RunReader>> RejudgedRun::make(RunReader& run, const JudgeBy& by) {
  ASSAY_TRY(auto properties, run.properties());
  ASSAY_TRY(Judging judging, judging_by(by, properties));
  return std::unique_ptr<RunReader>(
      new RejudgedRun(run, std::move(judging), std::move(properties)));
}

Status RejudgedRun::each(const RunQuery& query, const VisitFinished& visit) {
  RunQuery all;
  all.ids = query.ids;
  std::map<Outcome, std::uint64_t> visited;
  return run_.each(all, [&](const FinishedCase& finished) -> Status {
    FinishedCase again = finished;
    if (std::optional<Verdict> verdict = judging_.judge(finished)) {
      verdict->flags |= finished.verdict.flags & kFlagsOfAttempts;
      again.verdict = std::move(*verdict);
      complete_faults(again.verdict);
    }
    if (!wants(query, again.verdict)) return {};
    if (query.rows != RunQuery::Rows::all && ++visited[again.verdict.outcome] > query.most)
      return {};
    return visit(again);
  });
}

}  // namespace assay
