#pragma once

// What a case came to.

#include <cstdint>
#include <string>

#include "verdict/outcome.h"

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

}  // namespace assay
