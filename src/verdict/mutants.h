#pragma once

// Whether the judge finds the faults that `assay mutate` planted.

#include <string>
#include <vector>

#include "verdict/judge.h"

namespace assay {

enum class Fate {
  killed,        // found: the results differ, or there is no kernel
  survived,      // not found: bits differ, but the verdict is pass
  equivalent,    // no bit differs, so there is no mutant
  inapplicable,  // the fault cannot be planted in this case
  unjudged,      // the case does not pass without the fault, or planting failed
};

struct Mutant {
  std::string fault;   // its name
  std::string values;  // the value regime
  Fate fate = Fate::unjudged;
  bool weak = false;    // for some result, only its shape or its distribution was judged
  std::string planted;  // description of where the fault is
  std::string message;  // of the verdict, or why there is no mutant
};

// All faults planted in a record, in each value regime.
std::vector<Mutant> judge_mutants(const wire::Record& record, const Policy& policy,
                                  const Rules& rules);

}  // namespace assay
