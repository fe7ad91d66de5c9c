#pragma once

// judge(): what a record means under a policy. Pure: a stored run can be judged again under other
// tolerances without running anything.

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "verdict/mode.h"
#include "verdict/outcome.h"
#include "verdict/policy.h"
#include "wire/messages_generated.h"

namespace assay {

// Where the fault stands that a verdict's message tells, for those who sort faults.
struct Fault {
  std::string values;      // the kind of values under which it shows; empty: there is none
  bool gradient = false;   // of the input `leaf`; otherwise in the result there
  std::string leaf;        // "[0]", "x"
  std::uint8_t kinds = 0;  // MismatchKind bits of this leaf alone
  std::string dtype;       // of this leaf
  bool special = false;    // NaN or infinity where there should be none, or the other way round
  bool by_truth = false;   // float64 says what is right, and not the reference alone
  std::string phase;       // of an error: build, forward, backward, copy
};

struct Verdict {
  Outcome outcome = Outcome::pass;
  std::uint8_t mismatch = 0;  // MismatchKind bits
  std::uint8_t flags = 0;     // OutcomeFlag bits
  std::string lane;           // whose fault, where it is one lane's: its label
  std::string message;        // one line: what to look at first
  Fault fault = {};           // judge() says it; stores do not keep it
};

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

// A fault was planted there (`assay mutate`): it says nothing of the framework.
bool is_mutant(const wire::Trial& trial);

// A record says enough to be judged: its lanes are there, and pairs name two of them.
bool is_whole(const wire::Record& record);

// What one trial of a whole record by itself would come to; nothing where nothing is judged: it was
// not run, or the reference refuses its values.
std::optional<Verdict> judge_trial(const wire::Trial& trial, const Policy& policy,
                                   const wire::Record& record, const Rules& rules);

}  // namespace assay
