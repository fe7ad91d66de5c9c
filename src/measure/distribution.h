#pragma once

// Distribution functions of the laws that have one. Boost.Math stands behind them, in
// distribution.cc alone.

#include <optional>

#include "measure/law_kind.h"

namespace assay {

// A law with its parameters for one element.
struct Distribution {
  LawKind kind = LawKind::anything;
  double first = 0;
  double second = 0;

  bool discrete() const;
  // Whether the parameters are in the law's domain.
  bool valid() const;
  // The value of a law that leaves no choice, as a deviation of 0 does.
  std::optional<double> only_value() const;
  // Least and greatest possible values; infinite where there is no end.
  double least() const;
  double greatest() const;
  // P(X ≤ x). Of a discrete law x is a whole number.
  double cumulative(double x) const;
};

// P(X ≤ k) for k successes in n draws of probability p.
double binomial_cumulative(double k, double n, double p);

}  // namespace assay
