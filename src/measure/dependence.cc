#include "measure/dependence.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

namespace assay {
namespace {

// Finds the lag with the largest correlation. sum_of(count, lag) is the sum of products of the
// first `count` draws at that lag; `most` bounds the standard deviation of one product.
template <typename SumOf>
DependenceFound look_at_lags(std::size_t all, double most, const SumOf& sum_of,
                             std::span<const std::size_t> rows = {}) {
  DependenceFound found;
  const auto look = [&](std::size_t count, std::size_t lag) {
    const std::size_t pairs = count - lag;
    if (pairs < kFewestPairs) return;
    const double correlation =
        std::abs(sum_of(count, lag)) / (most * std::sqrt(static_cast<double>(pairs)));
    if (correlation > found.correlation || found.pairs == 0) found = {correlation, lag, pairs};
  };
  const std::size_t first = std::min(all, kNeighbours);
  for (std::size_t lag = 1; lag <= first / 2; ++lag) look(first, lag);
  if (const std::size_t half = all / 2; half > first / 2) look(all, half);
  for (const std::size_t row : rows) {
    if (row > first / 2 && row < all) look(all, row);
  }
  return found;
}

// Eight independent sums, so that additions need not wait for each other.
double sum_of_products(std::span<const double> left, std::span<const double> right) {
  constexpr std::size_t kSums = 8;
  std::array<double, kSums> sums{};
  const std::size_t whole = left.size() / kSums * kSums;
  for (std::size_t i = 0; i < whole; i += kSums) {
    for (std::size_t k = 0; k < kSums; ++k) sums[k] += left[i + k] * right[i + k];
  }
  for (std::size_t i = whole; i < left.size(); ++i) sums[i - whole] += left[i] * right[i];
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

// One bit per draw of the first ones, and the number of ones up to any position.
class Bits {
 public:
  explicit Bits(std::span<const std::uint8_t> draws) {
    for (std::size_t i = 0; i < draws.size(); ++i) {
      words_[i / 64] |= std::uint64_t{draws[i]} << (i % 64);
      before_[i + 1] = before_[i] + draws[i];
    }
  }
  std::uint64_t ones(std::size_t from, std::size_t to) const { return before_[to] - before_[from]; }
  // Positions below `pairs` with a one here and a one `lag` further. No bit is set behind the last
  // draw.
  std::uint64_t both(std::size_t lag) const {
    const std::size_t words = lag / 64;
    const auto bits = static_cast<int>(lag % 64);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i + words < kWords; ++i) {
      std::uint64_t later = words_[i + words] >> bits;
      if (bits != 0) later |= words_[i + words + 1] << (64 - bits);
      sum += static_cast<std::uint64_t>(std::popcount(words_[i] & later));
    }
    return sum;
  }

 private:
  static constexpr std::size_t kWords = kNeighbours / 64;
  std::array<std::uint64_t, kWords + 1> words_{};  // the last one is 0
  std::array<std::uint32_t, kNeighbours + 1> before_{};
};

}  // namespace

DependenceFound Dependence::run(std::span<const std::size_t> rows) const {
  const std::span<const double> draws = draws_;
  return look_at_lags(
      draws.size(), most_,
      [&](std::size_t count, std::size_t lag) {
        return sum_of_products(draws.first(count - lag), draws.subspan(lag, count - lag));
      },
      rows);
}

ChoiceDependence::ChoiceDependence(double share)
    : share_(share), most_(std::max(share, 1 - share) * 0.5) {}

std::span<std::uint8_t> ChoiceDependence::room(std::size_t more) {
  kept_ = draws_.size();
  draws_.resize(kept_ + more);
  return std::span(draws_).subspan(kept_);
}

// A draw minus its mean is 1 − share or −share. So the sum of products at a lag follows from the
// number of ones at each side and of pairs of ones.
DependenceFound ChoiceDependence::run() const {
  const std::span<const std::uint8_t> draws = draws_;
  const Bits first(draws.first(std::min(draws.size(), kNeighbours)));
  return look_at_lags(draws.size(), most_, [&](std::size_t count, std::size_t lag) {
    std::uint64_t before = 0;
    std::uint64_t behind = 0;
    std::uint64_t both = 0;
    if (count <= kNeighbours) {
      before = first.ones(0, count - lag);
      behind = first.ones(lag, count);
      both = first.both(lag);
    } else {
      for (std::size_t i = 0; i < count - lag; ++i) {
        before += draws[i];
        behind += draws[i + lag];
        both += draws[i] & draws[i + lag];
      }
    }
    return static_cast<double>(both) - share_ * static_cast<double>(before + behind) +
           share_ * share_ * static_cast<double>(count - lag);
  });
}

}  // namespace assay
