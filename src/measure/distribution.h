#pragma once

// Distribution functions. Only distribution.cc uses Boost.Math, which computes them.

#include <optional>

#include "measure/draw_distribution_kind.h"

namespace assay {

// A distribution with its parameters for one element.
struct Distribution {
  DrawDistribution kind = DrawDistribution::anything;
  double first = 0;
  double second = 0;

  bool discrete() const;
  // True if the parameters are in the domain of the distribution.
  bool valid() const;
  // The only possible value, if there is one (a deviation of 0).
  std::optional<double> only_value() const;
  // Least and greatest possible value; may be infinite.
  double least() const;
  double greatest() const;
  // P(X ≤ x). For a discrete distribution x must be a whole number.
  double cumulative(double x) const;
};

// P(X ≤ k) for k successes in n draws with probability p.
double binomial_cumulative(double k, double n, double p);

}  // namespace assay
