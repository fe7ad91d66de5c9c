#pragma once

// Counts the faults of a run. A baseline lists them, and two runs are compared by them.

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "case/case_traits.h"
#include "verdict/verdict.h"

namespace assay {

// Failures with the same key count as one fault of the framework.
struct FaultKey {
  std::string api;
  Outcome outcome = Outcome::mismatch;
  std::string where;  // location_of(): "result[·]", "gradient of x", "the test lane"
  std::string how;    // manifestation_of(): "value", "NaN or infinity wrong", the exception's class

  auto operator<=>(const FaultKey&) const = default;
  // Eight hexadecimal digits that name the fault. They are the same in every run.
  std::string digest() const;
};

// Where a fault was seen, and how large its error was.
struct FaultExtent {
  std::set<std::string> values;  // value regimes
  std::set<std::string> dtypes;  // of the wrong results or gradients
  int error_step = 0;            // error_step_of() the largest error

  auto operator<=>(const FaultExtent&) const = default;
  void add(const FaultExtent& other);
};

// The extent of a fault in all cases that have it.
struct FaultSums {
  std::int64_t cases = 0;
  FaultExtent extent;
};

// The faults of one case. Results that fail in the same way are one fault. All texts are valid
// fields of a sum line (as_field()). A fault without a dtype gets the dtype of the case's first
// tensor.
std::map<FaultKey, FaultExtent> faults_of_case(const CaseTraits& traits, const Verdict& verdict);

// The step of an error that is given in multiples of the error bar: eighths of a decade above the
// error bar, plus one; 0 if the error was not measured.
int error_step_of(double error);
// The smallest error of a step, in multiples of the error bar.
double error_of_step(int step);

// The names in alphabetical order, separated by commas: "nan,usual".
std::string join_names(const std::set<std::string>& names);
// The names that join_names() joined.
std::set<std::string> split_names(std::string_view names);

}  // namespace assay
