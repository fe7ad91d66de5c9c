#pragma once

// The statistics of a random result (measure/draw_distribution.h).

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay {

// One number for all elements, or one value for each element.
struct DrawParameter {
  double number = 0;
  std::vector<double> values;
  double at(std::size_t index) const { return values.empty() ? number : values[index]; }
};

struct DrawMeasurement {
  std::uint64_t count = 0;
  std::uint64_t outside = 0;  // elements with an impossible value
  std::uint64_t first_outside = 0;
  double first_value = 0;

  // With a distribution function: n samples of u.
  std::uint64_t judged = 0;
  double mean_z = 0;      // of u − 1/2, in standard deviations √(1/12n)
  double variance_z = 0;  // of (u − 1/2)² − 1/12, in standard deviations √(1/180n)
  double ks = 0;          // √n · sup |F_n(u) − u| (Kolmogorov and Smirnov), at 2,048 points
  double gap = 0;  // the larger of the gaps from 0 to the least u and from the greatest u to 1
  // How far u moves when a draw moves to the neighbouring values of its dtype: mean and maximum.
  // Rounding can move a draw this far, so smaller deviations are not judged.
  double resolution_mean = 0;
  double resolution_max = 0;

  // Dependence of draws `lag` apart: the largest sum of products of draws minus their means, over
  // all tested lags, in units of its largest possible standard deviation. `pairs` is the number of
  // products; 0: too few draws to test.
  double correlation = 0;
  std::uint64_t lag = 0;
  std::uint64_t pairs = 0;

  // Pairs of equal draws among the first ones, and the largest number that chance and the dtype
  // explain.
  std::uint64_t equal_pairs = 0;
  double equal_pairs_allowed = 0;

  // Draws with similar parameters have a mean of their own: the largest excess of such a mean over
  // what chance explains, as a share of that; and the parameter where that group begins.
  double group = 0;
  double group_from = 0;

  // kept, either: the draws that can be decided (two equal values cannot), and the kept ones of
  // them.
  std::uint64_t draws = 0;
  std::uint64_t kept = 0;
  std::uint64_t independent = 0;  // how many of the draws were independent; 0: all
  double share = 0;               // the promised probability of being kept

  // permutation: elements that kept their index.
  std::uint64_t in_place = 0;
};

}  // namespace assay
