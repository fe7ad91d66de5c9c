#include <cmath>

#include "measure/distribution.h"
#include "measure/law.h"

namespace assay {
namespace {

// The probability that one test may reject what holds, and ln(2 / that).
constexpr double kAlpha = 1e-10;
const double kLog = std::log(2 / kAlpha);

bool mean_holds(const LawMeasurement& m, double n) {
  return std::abs(m.mean_z) <= std::sqrt(2 * kLog) + m.resolution_mean * std::sqrt(12 * n);
}

// Bernstein: P(|S| ≥ t) ≤ 2 exp(-t² / 2(V + bt/3)), V = n/180 and b = 1/6, solved for t = z·√V.
bool variance_holds(const LawMeasurement& m, double n) {
  const double c = std::sqrt(180 / n) / 18 * kLog;
  const double bound = c + std::sqrt(c * c + 2 * kLog);
  return std::abs(m.variance_z) <= bound + m.resolution_mean * std::sqrt(180 * n);
}

bool distribution_holds(const LawMeasurement& m, double n) {
  return m.ks <= std::sqrt(kLog / 2) + m.resolution_max * std::sqrt(n);
}

bool share_holds(const LawMeasurement& m) {
  const double share = static_cast<double>(m.kept_count) / static_cast<double>(m.draws);
  const double p = m.keep_probability;
  if (!(p > 0 && p < 1)) return share == p;
  const auto n = static_cast<double>(m.independent == 0 ? m.draws : m.independent);
  const double kept = std::round(share * n);
  return binomial_cumulative(kept, n, p) >= kAlpha / 2 &&
         binomial_cumulative(n - kept, n, 1 - p) >= kAlpha / 2;
}

// 13! is less than 1 / kAlpha, 14! is more.
constexpr std::uint64_t kMostInPlace = 13;

}  // namespace

bool law_holds(const LawMeasurement& m) {
  if (m.out_of_support > 0) return false;
  if (m.draws > 0 && !share_holds(m)) return false;
  if (m.places_matter && m.in_place > kMostInPlace) return false;
  if (m.judged == 0) return true;
  const auto n = static_cast<double>(m.judged);
  return mean_holds(m, n) && variance_holds(m, n) && distribution_holds(m, n);
}

}  // namespace assay
