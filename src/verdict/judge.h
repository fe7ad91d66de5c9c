#pragma once

// judge(): what a record means under a policy. Pure: a stored run can be judged again under other
// tolerances without running anything.

#include <optional>

#include "base/result.h"
#include "verdict/mode.h"
#include "verdict/policy.h"
#include "verdict/verdict.h"
#include "wire/messages_generated.h"

namespace assay {

// What records of a run are judged by, beside the policy of each API.
struct Rules {
  wire::CaseSettingsT settings = {};        // of the run
  Agreement agreement = Agreement::within;  // of its mode

  // Of the settings' mode; with a mode that this assay does not know: usage.
  static Result<Rules> of(wire::CaseSettingsT settings);
};

// A record's trials one after another: the first that does not pass decides, and what other trials
// add in kinds of mismatch is kept beside it. Trials with a planted fault are left out.
Verdict judge(const wire::Record& record, const Policy& policy, const Rules& rules);

// What one trial of a whole record by itself would come to; nothing where nothing is judged: it was
// not run, or the reference refuses its values.
std::optional<Verdict> judge_trial(const wire::Trial& trial, const Policy& policy,
                                   const wire::Record& record, const Rules& rules);

}  // namespace assay
