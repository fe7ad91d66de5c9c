#pragma once

// Tolerances: one pair for a run, and entries for APIs that need their own, each with its reason.

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

// |test − reference| ≤ atol + rtol · |reference|, element by element, for floating and complex
// results. Whole numbers, truth values and text must be equal unless `exact_integers` is off.
struct Policy {
  double atol = 0.01;
  double rtol = 0.01;
  bool exact_integers = true;
  std::string reason;  // of an entry
  // The share of elements that may be off all the same, NaN and infinity not; of results that have
  // an error bar none may.
  double outliers = 0;
};

class Policies {
 public:
  // Text of a policies.toml:
  //   version = 1
  //   ["paddle.name"]
  //   atol = 0.1
  //   reason = "why"
  // An entry without a reason is refused.
  static Result<Policies> parse(std::string_view toml, std::string_view where, Policy run_default);

  const Policy& find(std::string_view api) const;
  // Tells two texts of policies apart.
  const std::string& version() const { return version_; }

 private:
  std::string version_;
  Policy default_;
  std::map<std::string, Policy, std::less<>> entries_;
};

}  // namespace assay
