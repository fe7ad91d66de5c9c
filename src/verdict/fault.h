#pragma once

// A fault: one way in which a case fails. Baselines, comparisons of runs and findings count faults.

#include <cstdint>
#include <string>
#include <string_view>

#include "verdict/outcome.h"

namespace assay {

// Either a result, gradient or input that is wrong (kinds != 0), or a lane that ended without
// results.
struct Fault {
  Outcome outcome = Outcome::mismatch;
  std::string values;     // the value regime; empty: the slot died before any regime ended
  bool gradient = false;  // `leaf` names an input whose gradient is wrong, not a part of the result
  std::string leaf;       // "[0]", "x"
  std::uint8_t kinds = 0;  // MismatchKind bits of this leaf
  std::string dtype;       // of this leaf
  bool special = false;    // NaN or infinity on one side only
  bool by_truth = false;   // float64 decided, not the reference alone
  double error = 0;        // largest error in multiples of the error bar; 0: not measured
  std::string lane;        // the role of the lane that failed: "test", "reference"
  std::string phase;       // of that lane: build, forward, backward, copy
  std::string raised;      // error_kind() of its error
  std::string message;     // one line: got and expected at the worst element, or the error

  bool operator==(const Fault&) const = default;
};

// Where the fault was seen: "result[·]", "gradient of x", "the input x", "the test lane". "·"
// replaces numbers, so that cases with longer lists share a fault.
std::string location_of(const Fault& fault);

// How the results are wrong ("value", "NaN or infinity wrong", "shape, dtype", "changed"), or
// Fault::raised.
std::string manifestation_of(const Fault& fault);

// The start of an error message, without numbers, names and values that differ between cases. At
// most 100 bytes of whole UTF-8 characters.
std::string error_kind(std::string_view message);

}  // namespace assay
