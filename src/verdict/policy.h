#pragma once

// Tolerances: one policy for a run, and one with a reason for each API that needs its own.

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

// Floating-point and complex results agree if |test − reference| ≤ atol + rtol · |reference| for
// each element. Integers and booleans must be equal unless `exact_integers` is false.
struct Policy {
  double atol = 0.01;
  double rtol = 0.01;
  bool exact_integers = true;
  std::string reason;  // why an API has its own policy
  // The share of elements that may exceed the tolerance. Not for NaN and infinity, and not for
  // results that have an error bar.
  double outliers = 0;
};

// The policies of a run.
class Policies {
 public:
  // Parses the text of a policies.toml:
  //   version = 1
  //   ["paddle.name"]
  //   atol = 0.1
  //   reason = "why"
  // `where` names the file in messages; `run_default` is the policy of all other APIs. A usage
  // error if the text is invalid or an entry has no reason.
  static Result<Policies> parse(std::string_view toml, std::string_view where, Policy run_default);

  // Adds the tolerances of single APIs: "API ATOL RTOL", separated by semicolons. Each replaces the
  // policy and the error bar of its API.
  Status add(std::string_view thresholds);

  // The policy of an API.
  const Policy& find(std::string_view api) const;
  // The policy of a case's API. A custom operator, _run_custom_op("NAME", …), may have one by its
  // own name.
  const Policy& of_case(std::string_view text) const;
  // Identifies the text: format version and hash.
  const std::string& version() const { return version_; }

 private:
  std::string version_;
  Policy default_;
  std::map<std::string, Policy, std::less<>> entries_;
};

}  // namespace assay
