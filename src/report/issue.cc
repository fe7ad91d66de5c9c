#include "report/issue.h"

#include <fmt/format.h>

#include <algorithm>

#include "case/canonical.h"
#include "case/parser.h"
#include "report/inputs.h"
#include "report/issue_script.h"
#include "report/run_report.h"

namespace assay {
namespace {

using Properties = std::map<std::string, std::string>;

std::string property(const Properties& properties, const std::string& key) {
  const auto found = properties.find(key);
  return found == properties.end() ? "(version unknown)" : found->second;
}

std::string title_of(const Finding& finding) {
  std::string title = fmt::format("{}: {}", finding.key.api, info(finding.key.outcome).name);
  if (!finding.key.where.empty()) title += fmt::format(", {}", finding.key.where);
  if (!finding.key.how.empty()) title += fmt::format(": {}", finding.key.how);
  return title;
}

// How it is known what is right.
std::string known_by(const Properties& properties, const Verdict& verdict, const Witness& witness) {
  const Fault& fault = verdict.fault();
  const std::string reference = fmt::format("PyTorch {}", property(properties, "torch"));
  if (fault.kinds == kInput)
    return "the documentation does not say that the call changes this input";
  if (witness.comparison == nullptr) {
    return verdict.outcome == Outcome::reference_error
               ? "the test lane's result; the reference fails"
               : fmt::format("{} computes the same call", reference);
  }
  if (fault.by_truth) {
    std::string means = fmt::format(
        "the same function in float64 on the same inputs, by {}, and again with every input "
        "perturbed by half a unit in the last place, which shows the error that rounding can cause",
        reference);
    if (witness.element) {
      means +=
          fmt::format("; its result in the precision of the call is {:.9g}", witness.by_reference);
    }
    return means;
  }
  if (witness.comparison->equality() == wire::Equality::bits) {
    return fmt::format("the call only moves elements, so their bits must not change; {} keeps them",
                       reference);
  }
  return fmt::format("{} on the same inputs", reference);
}

std::string frameworks(const Properties& properties) {
  std::string device = "cpu";
  if (const auto found = properties.find("test.device"); found != properties.end()) {
    device = found->second;
  }
  return fmt::format("PaddlePaddle {}, device {}; PyTorch {}; assay {}",
                     property(properties, "paddle"), device, property(properties, "torch"),
                     property(properties, "version.assay"));
}

// The verdict with the fault of this key first.
Verdict about(const FaultKey& key, Verdict verdict) {
  const auto found =
      std::find_if(verdict.faults.begin(), verdict.faults.end(), [&](const Fault& fault) {
        return location_of(fault) == key.where && manifestation_of(fault) == key.how;
      });
  if (found != verdict.faults.end()) std::rotate(verdict.faults.begin(), found, found + 1);
  verdict.message = message_of(key, verdict);
  return verdict;
}

}  // namespace

Result<Issue> write_issue(const Properties& properties, const Finding& finding,
                          const FoundCase& shown) {
  ASSAY_TRY(const wire::Record* record, wire::open<wire::Record>(shown.record));
  if (!has_lanes(*record)) return fail("the record of this case has no lanes");
  Case parsed;
  if (const auto status = parse_case(shown.text, parsed); !status) {
    return fail("a stored case does not parse: " + status.error().message);
  }
  const Verdict verdict = about(finding.key, shown.verdict);
  const wire::Trial& trial = trial_under(*record, verdict.fault().values);
  const Witness witness = witness_of(trial, verdict.fault());
  Issue issue;
  issue.title = title_of(finding);
  issue.text =
      fmt::format("# {}\n\n{}\n\n`{}`\n\n", issue.title, frameworks(properties), shown.text);
  if (verdict.outcome == Outcome::reference_error) {
    issue.why = "the fault is in the reference, which calls PyTorch through assay's API tables";
  } else if (auto script = issue_script(properties, parsed, shown.id, trial, verdict)) {
    issue.script = std::move(*script);
    issue.text += fmt::format("```python\n{}```\n\n", issue.script);
  } else {
    issue.why = script.error().message;
  }
  if (!issue.why.empty()) {
    issue.text += fmt::format(
        "There is no short script: {}. `assay repro` writes a longer one.\n\n", issue.why);
  }
  issue.text += fmt::format("- result: {}\n- source of the right result: {}\n", verdict.message,
                            known_by(properties, verdict, witness));
  issue.text += fmt::format("- seen in {} case{} of the run{}{}\n", finding.cases,
                            finding.cases == 1 ? "" : "s",
                            circumstances(finding).empty() ? "" : ": ", circumstances(finding));
  issue.text += fmt::format("- rerun with assay: `{}`\n", rerun_command(shown.text, properties));
  return issue;
}

}  // namespace assay
