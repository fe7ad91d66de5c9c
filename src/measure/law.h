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
#include "measure/law_measurement.h"

namespace assay {

std::optional<LawKind> find_law(std::string_view name);
std::string_view name(LawKind kind);
// How many parameters a law has.
std::size_t parameter_count(LawKind kind);

// Why these are no parameters of the law for `count` draws, empty if they are: what a lane sends is
// checked here before it is believed. Arrays have one value for each draw, but for categorical's
// weights, which are whole rows; groups, extents and the like are whole numbers in their range.
std::string parameter_fault(LawKind kind, std::span<const LawParameter> parameters,
                            std::size_t count);

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
