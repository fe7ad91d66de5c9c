#pragma once

// judge() turns a record into a verdict. It is a pure function of record, policy and settings, so a
// stored run can be judged again under other tolerances without running it.

#include <optional>

#include "base/result.h"
#include "verdict/mode.h"
#include "verdict/policy.h"
#include "verdict/verdict.h"
#include "wire/messages_generated.h"

namespace assay {

// The rules of a run for all its records. Each API has a Policy besides.
struct Rules {
  wire::CaseSettingsT settings = {};        // of the run
  Agreement agreement = Agreement::within;  // of its mode

  // The rules of these settings. A usage error if this assay does not know their mode.
  static Result<Rules> of(wire::CaseSettingsT settings);
};

// The verdict of a record. The first trial that does not pass decides the outcome; the verdict
// includes the mismatch kinds and faults of the other trials. Trials with a planted fault do not
// count.
Verdict judge(const wire::Record& record, const Policy& policy, const Rules& rules);

// The verdict of one trial of a whole record. Nullopt if the trial did not run or the reference
// rejects its values.
std::optional<Verdict> judge_trial(const wire::Trial& trial, const Policy& policy,
                                   const wire::Record& record, const Rules& rules);

}  // namespace assay
