#include "report/rejudge.h"

#include <fmt/format.h>

#include <charconv>

#include "report/run_report.h"
#include "wire/frame.h"
#include "wire/settings.h"

namespace assay {
namespace {

// What only several attempts at a case tell, and no record.
constexpr std::uint8_t kFlagsOfAttempts = kFlaky | kContaminated;

Result<double> number_of(const std::map<std::string, std::string>& properties,
                         const std::string& key, double usual) {
  const auto found = properties.find(key);
  if (found == properties.end()) return usual;
  double number = 0;
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return fail(fmt::format("the run's {} is not a number: {}", key, text));
  }
  return number;
}

}  // namespace

std::optional<Verdict> Judging::judge(const FinishedCase& finished) const {
  if (finished.record.empty()) return std::nullopt;
  const auto record = wire::open<wire::Record>(finished.record);
  if (!record) return std::nullopt;
  return assay::judge(**record, policies.find(api_of(finished.text)), agreement);
}

Verdict Judging::with_fault(const FinishedCase& finished) const {
  std::optional<Verdict> judged = judge(finished);
  if (judged && judged->outcome == finished.verdict.outcome) return std::move(*judged);
  return finished.verdict;  // judged by a policy that is not here: it keeps its own words
}

Result<Judging> judging_by(const JudgeBy& by, std::map<std::string, std::string>& properties) {
  const wire::CaseSettingsT usual;
  Judging judging;
  const auto mode = properties.find("mode");
  const ModeInfo* found = mode == properties.end() ? &modes().front() : find_mode(mode->second);
  if (found == nullptr) {
    return usage_error(
        fmt::format("this assay knows no mode {}; use the one that made the run", mode->second));
  }
  judging.agreement = found->agreement;
  Policy policy;
  ASSAY_TRY(policy.atol, number_of(properties, "atol", usual.atol));
  ASSAY_TRY(policy.rtol, number_of(properties, "rtol", usual.rtol));
  if (by.atol || by.rtol) {
    policy.atol = by.atol.value_or(policy.atol);
    policy.rtol = by.rtol.value_or(policy.rtol);
    policy.reason = "--atol, --rtol";  // what has a reason of its own is not judged by the bar
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

Status RejudgedRun::each_finished(const std::function<Status(const FinishedCase&)>& visit) {
  return run_.each_finished([&](const FinishedCase& finished) -> Status {
    std::optional<Verdict> verdict = judging_.judge(finished);
    if (!verdict) return visit(finished);
    FinishedCase again = finished;
    verdict->flags |= finished.verdict.flags & kFlagsOfAttempts;
    again.verdict = std::move(*verdict);
    return visit(again);
  });
}

}  // namespace assay
