#pragma once

// Faults of a run, counted: what a baseline lists and what two runs are compared by.

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "store/case_traits.h"
#include "verdict/verdict.h"

namespace assay {

// Failures with the same key are one fault of the framework.
struct FaultKey {
  std::string api;
  Outcome outcome = Outcome::mismatch;
  std::string where;  // location_of(): "result[·]", "gradient of x", "the test lane"
  std::string how;    // manifestation_of(): "value", "not finite", what was raised

  auto operator<=>(const FaultKey&) const = default;
  // Eight hexadecimal digits that name the fault in every run.
  std::string digest() const;
};

// How widely a fault shows.
struct FaultExtent {
  std::set<std::string> values;  // value regimes
  std::set<std::string> dtypes;  // of the wrong results or gradients
  // The largest error in eighths of a decade above the error bar, plus one; 0: not measured.
  int error_step = 0;

  auto operator<=>(const FaultExtent&) const = default;
  void add(const FaultExtent& other);
};

struct FaultSums {
  std::int64_t cases = 0;
  FaultExtent extent;
};

// The faults of one case; results that fail alike are one fault. All texts are fields of a sum line
// (as_field()). A fault without a dtype of its own has that of the case's first tensor.
std::map<FaultKey, FaultExtent> faults_of_case(const CaseTraits& traits, const Verdict& verdict);

// FaultExtent::error_step of an error in multiples of the error bar.
int error_step_of(double error);
// The smallest error of a step, in multiples of the error bar.
double error_of_step(int step);

// "nan,usual": the names in alphabetical order.
std::string join_names(const std::set<std::string>& names);
std::set<std::string> split_names(std::string_view names);

}  // namespace assay
