#pragma once

// The verdict of one case.

#include <cstdint>
#include <string>
#include <vector>

#include "verdict/fault.h"
#include "verdict/outcome.h"

namespace assay {

struct Verdict {
  Outcome outcome = Outcome::pass;
  std::uint8_t mismatch = 0;       // MismatchKind bits
  std::uint8_t flags = 0;          // OutcomeFlag bits
  std::string lane;                // name of the lane at fault, if one lane is
  std::string message;             // one line about the first fault
  std::vector<Fault> faults = {};  // of every failing value regime; the first decides the outcome

  // The fault that `message` describes; an empty one if nothing failed.
  const Fault& fault() const;
};

// Adds the missing fault to a verdict that judge() did not make, such as that of a slot that died.
void complete_faults(Verdict& verdict);

}  // namespace assay
