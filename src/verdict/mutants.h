#pragma once

// What came of the faults that `assay mutate` planted: whether the judge would have found them.

#include <string>
#include <vector>

#include "verdict/judge.h"

namespace assay {

enum class Fate {
  killed,        // the verdict is that results differ, or that there is no kernel
  survived,      // bits differ, and the verdict is pass
  equivalent,    // not a bit differs: there is no mutant
  inapplicable,  // the case has no place for the fault
  unjudged,      // it does not pass without the fault, or the planting went wrong
};

struct Mutant {
  std::string fault;   // its name
  std::string values;  // the kind of values that the case was run under
  Fate fate = Fate::unjudged;
  bool weak = false;    // of some result a law or no more than the shape is judged
  std::string planted;  // where, in words
  std::string message;  // the verdict's, or the reason why there is no mutant
};

// Every fault of a record under each of its kinds of values.
std::vector<Mutant> judge_mutants(const wire::Record& record, const Policy& policy,
                                  const Rules& rules);

}  // namespace assay
