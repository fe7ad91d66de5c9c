#include <array>
#include <cmath>
#include <cstdio>

#include "measure/dependence.h"
#include "measure/distribution.h"
#include "measure/draw_distribution.h"

namespace assay {
namespace {

// The probability that one test rejects a right result, and ln(2 / that).
constexpr double kChance = 1e-10;
constexpr double kLog = 23.719;
// 14! is the first factorial above 1 / kChance.
constexpr std::uint64_t kMostInPlace = 13;

// A statistic, and the largest value that chance and rounding explain.
struct Held {
  double found;
  double allowed;
  bool holds() const { return found <= allowed; }
};

Held mean_of(const DrawMeasurement& m) {
  const auto n = static_cast<double>(m.judged);
  return {std::abs(m.mean_z), std::sqrt(2 * kLog) + m.resolution_mean * std::sqrt(12 * n)};
}

// Bernstein: P(|S| ≥ t) ≤ 2 exp(−t² / 2(V + bt/3)), V = n/180 and b = 1/6, solved for z = t/√V.
Held variance_of(const DrawMeasurement& m) {
  const auto n = static_cast<double>(m.judged);
  const double c = std::sqrt(180 / n) / 18 * kLog;
  return {std::abs(m.variance_z),
          c + std::sqrt(c * c + 2 * kLog) + m.resolution_mean * std::sqrt(180 * n)};
}

Held distance_of(const DrawMeasurement& m) {
  const auto n = static_cast<double>(m.judged);
  return {m.ks, std::sqrt(kLog / 2) + m.resolution_max * std::sqrt(n)};
}

// No draw near one end: n draws leave a gap g with probability (1 − g)^n.
Held ends_of(const DrawMeasurement& m) {
  const auto n = static_cast<double>(m.judged);
  return {-n * std::log1p(-std::max(0.0, m.gap - m.resolution_max)), kLog};
}

// Rounding moves a draw by at most its resolution. For products this is at most half of it, in
// units of 1/√48 per pair.
Held dependence_of(const DrawMeasurement& m) {
  const auto n = static_cast<double>(m.pairs);
  return {m.correlation, std::sqrt(2 * (kLog + std::log(static_cast<double>(kMostLags)))) +
                             m.resolution_mean * std::sqrt(12 * n)};
}

bool share_holds(const DrawMeasurement& m) {
  if (m.draws == 0) return true;
  const double found = static_cast<double>(m.kept) / static_cast<double>(m.draws);
  if (!(m.share > 0 && m.share < 1)) return found == m.share;
  const std::uint64_t independent = m.independent == 0 ? m.draws : m.independent;
  const auto n = static_cast<double>(independent < m.draws ? independent : m.draws);
  const double kept = std::round(found * n);
  return binomial_cumulative(kept, n, m.share) > kChance / 2 &&
         binomial_cumulative(n - kept, n, 1 - m.share) > kChance / 2;
}

bool spread_holds(const DrawMeasurement& m) {
  return m.judged == 0 || (mean_of(m).holds() && variance_of(m).holds() && distance_of(m).holds() &&
                           ends_of(m).holds());
}

bool groups_hold(const DrawMeasurement& m) { return m.group <= 1; }

bool pairs_hold(const DrawMeasurement& m) {
  return static_cast<double>(m.equal_pairs) <= m.equal_pairs_allowed;
}

template <typename... Values>
std::string line(const char* format, Values... values) {
  std::array<char, 400> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

unsigned long long whole(std::uint64_t number) { return number; }

}  // namespace

bool distribution_holds(const DrawMeasurement& measured) {
  return measured.outside == 0 && share_holds(measured) && spread_holds(measured) &&
         dependence_of(measured).holds() && measured.in_place <= kMostInPlace &&
         groups_hold(measured) && pairs_hold(measured);
}

std::string describe(DrawDistribution kind, const DrawMeasurement& m) {
  const std::string distribution(name(kind));
  if (m.outside > 0) {
    return line(
        "%llu of %llu elements cannot come from the distribution %s; first: element %llu, %.9g",
        whole(m.outside), whole(m.count), distribution.c_str(), whole(m.first_outside),
        m.first_value);
  }
  if (!share_holds(m)) {
    return line("%llu of %llu draws were kept (%llu independent); the promised share is %.4g",
                whole(m.kept), whole(m.draws), whole(m.independent == 0 ? m.draws : m.independent),
                m.share);
  }
  if (m.in_place > kMostInPlace) {
    return line("%llu of %llu elements kept their position; a random permutation keeps about one",
                whole(m.in_place), whole(m.count));
  }
  if (spread_holds(m) && !dependence_of(m).holds()) {
    return line(
        "draws of the distribution %s that are %llu apart are not independent: the sum of %llu "
        "products is off by %.4g deviations (chance explains %.4g)",
        distribution.c_str(), whole(m.lag), whole(m.pairs), m.correlation,
        dependence_of(m).allowed);
  }
  if (spread_holds(m) && !pairs_hold(m)) {
    return line(
        "draws of the distribution %s repeat: %llu pairs among the first are equal (chance and the "
        "dtype explain %.0f)",
        distribution.c_str(), whole(m.equal_pairs), m.equal_pairs_allowed);
  }
  if (spread_holds(m) && !groups_hold(m)) {
    return line(
        "draws of the distribution %s whose parameter is near %.4g have another mean: %.4g times "
        "as "
        "far off as chance explains",
        distribution.c_str(), m.group_from, m.group);
  }
  return line(
      "%llu draws against the distribution %s: mean off by %.4g deviations (chance explains %.4g), "
      "variance "
      "by %.4g (%.4g), Kolmogorov-Smirnov %.4g (%.4g), gap at an end %.4g (%.4g)",
      whole(m.judged), distribution.c_str(), m.mean_z, mean_of(m).allowed, m.variance_z,
      variance_of(m).allowed, m.ks, distance_of(m).allowed, m.gap,
      -std::expm1(-kLog / static_cast<double>(m.judged)) + m.resolution_max);
}

}  // namespace assay
