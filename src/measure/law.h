#pragma once

// A random result against the law that it promises. Two draws never agree element by element; what
// can be checked is that each element lies where the law allows and that all together are spread as
// the law says.
//
// Where a law has a distribution function F, u = F(x) is uniform on [0, 1] if the promise holds,
// whatever the parameters of each element (probability integral transform; for whole numbers the
// randomised one, u = F(x − 1) + v·P(x) with v from Philox, so that the same draw always gives the
// same numbers). Of u the mean, the variance and the whole distribution are judged.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "case/dtype.h"
#include "measure/law_kind.h"

namespace assay {

std::optional<LawKind> find_law(std::string_view name);
std::string_view name(LawKind kind);
// How many parameters a law has.
std::size_t parameter_count(LawKind kind);

// A number for all elements, or one value for each element.
struct LawParameter {
  double number = 0;
  std::vector<double> values;
  double at(std::size_t index) const { return values.empty() ? number : values[index]; }
};

// Why these are no parameters of the law for `count` draws, empty if they are: what a lane sends is
// checked here before it is believed. Arrays have one value for each draw, but for categorical's
// weights, which are whole rows; groups, extents and the like are whole numbers in their range.
std::string parameter_fault(LawKind kind, std::span<const LawParameter> parameters,
                            std::size_t count);

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

inline constexpr std::uint64_t kLawSamples = std::uint64_t{1} << 18;

// `drawn` as numbers, `resolution` the relative spacing of its dtype. The parameters have no
// parameter_fault. Elements whose parameters are outside the law's domain (a negative rate, NaN)
// are not judged. Of more than kLawSamples elements all are looked at for the support, and that
// many, evenly spread, and the first kNeighbours for u.
LawMeasurement measure_law(LawKind kind, std::span<const double> drawn,
                           std::span<const LawParameter> parameters, double resolution);

// Whether the law may hold: nothing is outside, and no statistic is where it comes with a
// probability of 1e-10 or less; there are at most four, so a right result is called wrong less
// than once in 2·10^9 cases. The bounds hold for every number of draws, without a limit theorem:
//   mean      the uniform distribution is strictly sub-Gaussian: P(|z| ≥ t) ≤ 2 exp(−t²/2)
//   variance  Bernstein's inequality, (u − 1/2)² being at most 1/6 above its mean
//   ks        Dvoretzky, Kiefer and Wolfowitz with Massart's constant: 2 exp(−2t²)
//   share     the two tails of the binomial distribution itself
//   lag       sums of products of draws `lag` apart are martingales whose steps are sub-Gaussian:
//             P(|S| ≥ t·√V) ≤ 2 exp(−t²/2), V the most that their variances can add up to
//             (measure/dependence.h); the chance is shared by all lags
//   in place  a random permutation leaves k or more with a probability of at most 1/k!
bool law_holds(const LawMeasurement& measured);
// Why it does not hold, in one line.
std::string describe(LawKind kind, const LawMeasurement& measured);

// Relative spacing of the values of a dtype, of either part of complex ones; 0 for whole numbers
// and bool.
double resolution_of(DType dtype);

}  // namespace assay
