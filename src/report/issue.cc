#include "report/issue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
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
  return found == properties.end() ? "of an unknown version" : found->second;
}

std::string title_of(const Finding& finding) {
  std::string title = fmt::format("{}: {}", finding.key.api, info(finding.key.outcome).name);
  if (!finding.key.where.empty()) title += fmt::format(", {}", finding.key.where);
  if (!finding.key.how.empty()) title += fmt::format(": {}", finding.key.how);
  return title;
}

std::string full_name(const FaultyLane& lane) {
  return lane.dialect == nullptr ? lane.framework : std::string(lane.dialect->full_name);
}

// The name of the lane, if assay.toml defines it, and what its processes have beside the framework.
std::string particulars_of(const FaultyLane& lane) {
  std::string text;
  if (lane.label != lane.framework) text += fmt::format(", lane {}", lane.label);
  if (!lane.environment.empty()) text += fmt::format(", environment `{}`", lane.environment);
  if (!lane.modules.empty()) text += fmt::format(", with {}", fmt::join(lane.modules, ", "));
  return text;
}

// How the expected value is known.
std::string known_by(const Properties& properties, const Fault& fault, const Witness& witness) {
  if (fault.kinds == kInput) return "definition: the call does not promise to change this input";
  if (witness.comparison == nullptr) {
    if (fault.outcome == Outcome::crash || fault.outcome == Outcome::timeout) {
      return "definition: a call returns a result or raises";
    }
    return fmt::format(
        "the {} lane, which computes a result for this call",
        property(properties, fault.lane == "reference" ? "test.lane" : "reference.lane"));
  }
  if (fault.by_truth) {
    std::string means =
        "an evaluation of the same function in float64, repeated with every input moved by half a "
        "unit in its last place to bound the effect of rounding";
    if (witness.element) {
      means += fmt::format("; the reference in the precision of the call gives {}",
                           witness.by_reference);
    }
    return means;
  }
  if (witness.comparison->equality() == wire::Equality::bits) {
    return "definition: the call moves elements and keeps their bits";
  }
  return fmt::format("the reference lane, {} {}, on the same inputs",
                     property(properties, "reference.framework"),
                     property(properties, property(properties, "reference.lane")));
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
                          const FoundCase& shown, const Tracer& tracer) {
  ASSAY_TRY(const wire::Record* record, wire::open<wire::Record>(shown.record));
  if (!has_lanes(*record)) return fail("the record of this case has no lanes");
  Case parsed;
  if (const auto status = parse_case(shown.text, parsed); !status) {
    return fail("a stored case does not parse: " + status.error().message);
  }
  const Verdict verdict = about(finding.key, shown.verdict);
  const Fault& fault = verdict.fault();
  const wire::Trial& trial = trial_under(*record, fault.values);
  Issue issue;
  issue.lane = faulty_lane(properties, fault);
  const FaultyLane& lane = issue.lane;
  issue.title = title_of(finding);
  issue.text = fmt::format("# {}\n\n{} {}, device {}{}; found by assay {}\n\n`{}`\n\n", issue.title,
                           full_name(lane), lane.build, lane.device, particulars_of(lane),
                           property(properties, "version.assay"), shown.text);
  ASSAY_TRY(const std::uint64_t seed, run_seed(properties));
  if (auto script = issue_script(lane, seed, parsed, shown.id, trial, fault, tracer)) {
    issue.script = std::move(*script);
    issue.text += fmt::format("```python\n{}```\n\n", issue.script);
  } else {
    issue.why = script.error().message;
    issue.text += fmt::format(
        "There is no short script: {}. `assay shrink` may find a smaller case; "
        "`assay repro` writes a longer script.\n\n",
        issue.why);
  }
  issue.text += fmt::format("- got: {}\n- source of the expected result: {}\n", verdict.message,
                            known_by(properties, fault, witness_of(trial, fault)));
  issue.text += fmt::format("- seen in {} of the run{}{}\n", count_of(finding.cases, "case"),
                            circumstances(finding).empty() ? "" : ": ", circumstances(finding));
  issue.text += fmt::format("- rerun with assay: `{}`\n", rerun_command(shown.text, properties));
  return issue;
}

}  // namespace assay
