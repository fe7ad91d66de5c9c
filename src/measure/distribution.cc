#include "measure/distribution.h"

#include <algorithm>
#include <boost/math/policies/policy.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <limits>
#include <numbers>

namespace assay {
namespace {

namespace policies = boost::math::policies;
// Boost.Math without exceptions, and with double computed as double.
using Quiet = policies::policy<
    policies::domain_error<policies::ignore_error>, policies::pole_error<policies::ignore_error>,
    policies::overflow_error<policies::ignore_error>,
    policies::evaluation_error<policies::ignore_error>, policies::promote_double<false>>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double normal_cumulative(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

// Regularised incomplete gamma functions, extended to their limits.
double gamma_lower(double shape, double x) {
  if (x <= 0) return 0;
  return x == kInfinity ? 1 : boost::math::gamma_p(shape, x, Quiet());
}
double gamma_upper(double shape, double x) {
  return x <= 0 ? 1 : boost::math::gamma_q(shape, x, Quiet());
}

}  // namespace

double binomial_cumulative(double k, double n, double p) {
  if (k < 0) return 0;
  if (k >= n) return 1;
  return boost::math::ibetac(k + 1, n - k, p, Quiet());
}

bool Distribution::discrete() const {
  switch (kind) {
    case DrawDistribution::bernoulli:
    case DrawDistribution::integers:
    case DrawDistribution::poisson:
    case DrawDistribution::geometric:
    case DrawDistribution::binomial:
      return true;
    default:
      return false;
  }
}

bool Distribution::valid() const {
  const auto probability = [](double p) { return p >= 0 && p <= 1; };
  if (!std::isfinite(first) || !std::isfinite(second)) return false;
  switch (kind) {
    case DrawDistribution::uniform:
      return first <= second;
    case DrawDistribution::integers:
      return first < second;
    case DrawDistribution::normal:
    case DrawDistribution::log_normal:
    case DrawDistribution::cauchy:
      return second >= 0;
    case DrawDistribution::bernoulli:
      return probability(first);
    case DrawDistribution::geometric:
      return first > 0 && first <= 1;
    case DrawDistribution::binomial:
      return first >= 0 && probability(second);
    case DrawDistribution::exponential:
      return first > 0;
    case DrawDistribution::poisson:
      return first >= 0;
    case DrawDistribution::gamma:
      return first > 0 && second > 0;
    default:
      return false;
  }
}

std::optional<double> Distribution::only_value() const {
  switch (kind) {
    case DrawDistribution::uniform:
      return first == second ? std::optional(first) : std::nullopt;
    case DrawDistribution::normal:
    case DrawDistribution::cauchy:
      return second == 0 ? std::optional(first) : std::nullopt;
    case DrawDistribution::log_normal:
      return second == 0 ? std::optional(std::exp(first)) : std::nullopt;
    default:
      return std::nullopt;
  }
}

double Distribution::least() const {
  switch (kind) {
    case DrawDistribution::uniform:
      return first;
    case DrawDistribution::integers:
      return std::ceil(first);
    case DrawDistribution::normal:
    case DrawDistribution::cauchy:
      return -kInfinity;
    case DrawDistribution::bernoulli:
      return first == 1 ? 1 : 0;
    case DrawDistribution::geometric:
      return 1;
    case DrawDistribution::binomial:
      return second == 1 ? first : 0;
    default:
      return 0;
  }
}

double Distribution::greatest() const {
  switch (kind) {
    case DrawDistribution::uniform:
      return second;
    case DrawDistribution::integers:
      return std::ceil(second) - 1;
    case DrawDistribution::bernoulli:
      return first == 0 ? 0 : 1;
    case DrawDistribution::geometric:
      return first == 1 ? 1 : kInfinity;
    case DrawDistribution::binomial:
      return second == 0 ? 0 : first;
    case DrawDistribution::poisson:
      return first == 0 ? 0 : kInfinity;
    default:
      return kInfinity;
  }
}

double Distribution::cumulative(double x) const {
  if (x < least()) return 0;
  if (x >= greatest()) return 1;
  switch (kind) {
    case DrawDistribution::uniform:
      return (x - first) / (second - first);
    case DrawDistribution::integers:
      return (x + 1 - least()) / (greatest() + 1 - least());
    case DrawDistribution::normal:
      return normal_cumulative((x - first) / second);
    case DrawDistribution::log_normal:
      return x <= 0 ? 0 : normal_cumulative((std::log(x) - first) / second);
    case DrawDistribution::cauchy:
      return std::atan((x - first) / second) / std::numbers::pi + 0.5;
    case DrawDistribution::bernoulli:
      return 1 - first;
    case DrawDistribution::geometric:
      return -std::expm1(x * std::log1p(-first));
    case DrawDistribution::exponential:
      return -std::expm1(-x * first);
    case DrawDistribution::gamma:
      return gamma_lower(first, x * second);
    case DrawDistribution::poisson:
      return gamma_upper(x + 1, first);
    case DrawDistribution::binomial:
      return binomial_cumulative(x, first, second);
    default:
      return 0;
  }
}

}  // namespace assay
