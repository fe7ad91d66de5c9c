#pragma once

// What is measured of a random result (measure/law.h), and by which numbers.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay {

// A number for all elements, or one value for each element.
struct LawParameter {
  double number = 0;
  std::vector<double> values;
  double at(std::size_t index) const { return values.empty() ? number : values[index]; }
};

struct LawMeasurement {
  std::uint64_t count = 0;
  std::uint64_t outside = 0;  // elements that the law cannot give
  std::uint64_t first_outside = 0;
  double first_value = 0;

  // Laws with a distribution function: n samples of u.
  std::uint64_t judged = 0;
  double mean_z = 0;      // of u − 1/2, in deviations √(1/12n)
  double variance_z = 0;  // of (u − 1/2)² − 1/12, in deviations √(1/180n)
  double ks = 0;          // √n · sup |F_n(u) − u| (Kolmogorov and Smirnov), at 2,048 places
  double gap = 0;         // from 0 to the least u or from the greatest to 1, whichever is more
  // How far u moves when a draw moves to the next values of its dtype, on average and at most:
  // rounding may have moved it, so nothing finer is held against the draw.
  double resolution_mean = 0;
  double resolution_max = 0;

  // How draws hang together that lie `lag` apart: the largest sum of products of what they are off
  // their means, over all lags that are looked at, in units of the most that its variance can be;
  // `pairs` of them. 0 pairs: too few draws to look.
  double correlation = 0;
  std::uint64_t lag = 0;
  std::uint64_t pairs = 0;

  // kept, either: draws that can be told (of two equal values they cannot), and how many were kept.
  std::uint64_t draws = 0;
  std::uint64_t kept = 0;
  std::uint64_t independent = 0;  // how many of them were independent; 0: all
  double share = 0;               // as promised

  // permutation: elements that stayed in their place.
  std::uint64_t in_place = 0;
};

}  // namespace assay
