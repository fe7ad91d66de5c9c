#include "verdict/speed.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/statistics.h"

namespace assay {
namespace {

// How many subsets of the numbers 1 … n have each sum: the distribution of the signed-rank
// statistic if neither side is slower.
std::vector<double> signed_rank_counts(std::size_t n) {
  std::vector<double> counts(n * (n + 1) / 2 + 1, 0);
  counts[0] = 1;
  for (std::size_t rank = 1; rank <= n; ++rank) {
    for (std::size_t sum = counts.size() - 1; sum >= rank; --sum) counts[sum] += counts[sum - rank];
  }
  return counts;
}

// How many orders of m and n things have each number of inversions: the distribution of the
// Mann-Whitney statistic. The numbers are the coefficients of the Gaussian binomial.
std::vector<double> inversion_counts(std::size_t m, std::size_t n) {
  std::vector<double> counts(m * n + 1, 0);
  counts[0] = 1;
  for (std::size_t i = 1; i <= n; ++i) {
    for (std::size_t at = counts.size(); at-- > m + i;) counts[at] -= counts[at - m - i];
    for (std::size_t at = i; at < counts.size(); ++at) counts[at] += counts[at - i];
  }
  return counts;
}

// The largest number of smallest values of the statistic whose probability is at most doubt / 2.
std::size_t values_in_tail(const std::vector<double>& counts, double doubt) {
  double all = 0;
  for (const double count : counts) all += count;
  double sum = 0;
  std::size_t tail = 0;
  while (tail < counts.size() && (sum + counts[tail]) <= all * doubt / 2) sum += counts[tail++];
  return tail;
}

// The median of the differences, and the interval that excludes `tail` differences on each side.
Ratio interval_of(std::vector<double> differences, std::size_t tail) {
  Ratio ratio;
  ratio.middle = std::exp(median_of(differences));
  if (tail == 0) return ratio;
  std::sort(differences.begin(), differences.end());
  ratio.low = std::exp(differences[tail - 1]);
  ratio.high = std::exp(differences[differences.size() - tail]);
  return ratio;
}

std::vector<double> logarithms(std::span<const double> values) {
  std::vector<double> logs;
  logs.reserve(values.size());
  // A clock may report 0 for a call that took some time.
  for (const double value : values) logs.push_back(std::log(std::max(value, 1e-9)));
  return logs;
}

}  // namespace

std::string_view name(Speed speed) {
  constexpr std::array<std::string_view, 4> kNames{"same", "fast", "slow", "unsure"};
  return kNames[static_cast<std::size_t>(speed)];
}

double spread_of(std::span<const double> values) {
  const std::vector<double> all(values.begin(), values.end());
  const double middle = median_of(all);
  return middle > 0 ? (percentile(all, 75) - percentile(all, 25)) / middle : 0;
}

Ratio ratio_of_pairs(std::span<const double> ratios, double doubt) {
  const std::size_t count = ratios.size();
  if (count == 0) return {};
  const std::vector<double> logs = logarithms(ratios);
  std::vector<double> means;
  means.reserve(count * (count + 1) / 2);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j <= i; ++j) means.push_back((logs[i] + logs[j]) / 2);
  }
  return interval_of(std::move(means), values_in_tail(signed_rank_counts(count), doubt));
}

Ratio ratio_of_sets(std::span<const double> left, std::span<const double> right, double doubt) {
  if (left.empty() || right.empty()) return {};
  const std::vector<double> others = logarithms(right);
  std::vector<double> differences;
  differences.reserve(left.size() * right.size());
  for (const double mine : logarithms(left)) {
    for (const double other : others) differences.push_back(mine - other);
  }
  return interval_of(std::move(differences),
                     values_in_tail(inversion_counts(left.size(), right.size()), doubt));
}

Speed speed_of(const Ratio& ratio, double margin) {
  const double least = 1 / (1 + margin);
  const double most = 1 + margin;
  if (ratio.low > most) return Speed::slow;
  if (ratio.high < least) return Speed::fast;
  return ratio.low >= least && ratio.high <= most ? Speed::same : Speed::unsure;
}

}  // namespace assay
