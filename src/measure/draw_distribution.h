#pragma once

// Compares a random result with the distribution that its API promises (a "distribution" in names
// of types and messages). Two draws never agree element by element. What can be tested is that each
// element is possible, and that all of them together have the distribution.
//
// If the distribution has a distribution function F, then u = F(x) is uniform on [0, 1], whatever
// the parameters of each element are (probability integral transform). For whole numbers u = F(x −
// 1) + v·P(x), with v from Philox, so that the same draw always gives the same numbers. The mean,
// the variance and the whole distribution of u are judged.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "case/dtype.h"
#include "measure/draw_distribution_kind.h"
#include "measure/draw_measurement.h"

namespace assay {

// Finds a distribution by its name in messages; nothing for an unknown name.
std::optional<DrawDistribution> find_distribution(std::string_view name);
std::string_view name(DrawDistribution kind);
// The number of parameters.
std::size_t parameter_count(DrawDistribution kind);

// Checks parameters that a lane sent for `count` draws. Returns what is wrong with them, or "".
// Arrays need one value per draw, except categorical's weights, which are whole rows. Groups,
// extents and similar parameters are whole numbers in their range.
std::string parameter_fault(DrawDistribution kind, std::span<const DrawParameter> parameters,
                            std::size_t count);

inline constexpr std::uint64_t kDrawSamples = std::uint64_t{1} << 18;

// Measures `drawn`; `resolution` is the relative spacing of its dtype. parameter_fault() must have
// accepted the parameters. Elements whose parameters are out of the domain (a negative rate, NaN)
// are not judged. All elements are checked for possible values; u is computed for the first
// kNeighbours and at most kDrawSamples others, evenly spread.
// `rows` are the lengths of rows, planes and so on, whose repetition is looked for.
DrawMeasurement measure_draws(DrawDistribution kind, std::span<const double> drawn,
                              std::span<const DrawParameter> parameters, double resolution,
                              std::span<const std::size_t> rows = {});

// True if the draws may have the distribution: no element is impossible, and no statistic has a
// value whose probability is 1e-10 or less. There are at most seven statistics, so a right result
// is rejected less than once in 10^9 cases. The bounds hold for every number of draws, without a
// limit theorem:
//   mean      the uniform distribution is strictly sub-Gaussian: P(|z| ≥ t) ≤ 2 exp(−t²/2)
//   variance  Bernstein's inequality; (u − 1/2)² is at most 1/6 above its mean
//   ks        Dvoretzky, Kiefer and Wolfowitz with Massart's constant: 2 exp(−2t²)
//   share     the two tails of the binomial distribution
//   lag       sums of products of draws `lag` apart are martingales with sub-Gaussian steps:
//             P(|S| ≥ t·√V) ≤ 2 exp(−t²/2), where V bounds the sum of their variances
//             (measure/dependence.h); all lags share the probability
//   group     the mean of draws with similar parameters, as `mean`; and the sum of the squares of
//             all groups: P(Σz² > k + 2√(kL) + 2L) ≤ exp(−L) (Hsu, Kakade and Zhang, 2012)
//   equal     pairs of equal draws are as rare as the dtype allows, by the Poisson distribution
//             (measure/groups.h)
//   in place  a random permutation keeps k or more elements with a probability of at most 1/k!
bool distribution_holds(const DrawMeasurement& measured);
// The reason why distribution_holds() is false, in one line.
std::string describe(DrawDistribution kind, const DrawMeasurement& measured);

// The relative spacing of a dtype's values (of either part of complex ones); 0 for whole numbers
// and bool.
double resolution_of(DType dtype);

}  // namespace assay
