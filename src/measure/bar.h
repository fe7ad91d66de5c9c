#pragma once

// The error bar: the distance of a result from the truth, in units of the error that rounding can
// cause.
//
// The truth is the reference function in float64 on the same inputs. Rounding can cause an error of
// one unit in the last place of the result, plus the conditioning: how far the truth moves when
// every input moves by up to half a unit in its last place. Both are multiplied by the square root
// of the number of terms that a reduction adds up, because rounding errors of n additions behave
// like a random walk (Higham and Mary, "A new approach to probabilistic rounding error analysis",
// SIAM J. Sci. Comput. 41(5), 2019).
//
// Half precision has no root: kernels add up in float32 and round the sum once. Half-precision
// steps before and after the sum count as conditioning, and the sum as few roundings.
//
// A result of few roundings has a smaller bar: three quarters of the largest of these, instead of
// their sum. Such are results of few terms, and results of exact inputs for which the reference
// rounds every element correctly. If nothing was rounded (exact inputs or one term, and a reference
// that has every element exactly), the bar is three quarters of the unit alone.

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "case/dtype.h"
#include "measure/measure.h"

namespace assay {

using Values = std::span<const std::complex<double>>;

// At most this many terms are few…
inline constexpr double kFewTerms = 64;
// … and the bar is then this share of the largest error source.
inline constexpr double kFewShare = 0.75;

inline constexpr double kResultSlack = 4;
// One in 2^24 upstream gradients in ±4 is so small that a product without it is this much larger.
inline constexpr double kGradientSlack = 0x1p24;

struct BarInput {
  DType dtype = DType::float32;  // of the result
  Values test;
  Values reference;
  Values truth;
  std::vector<Values> moved;  // the truth under perturbed inputs
  // That a reduction adds up for one element. Less than 1: a function of one number, which does not
  // overflow before its result does. 0: it is good to a few ulps everywhere, so conditioning
  // excuses nothing.
  double terms = 1;
  // An error that is always allowed: this many ulps of the largest value, and of 1.
  double scale_floor = 0;
  double unit_floor = 0;
  // True if a jump of the truth under perturbed inputs excuses any value. False for exact inputs.
  bool jumps_excuse = true;
  // An intermediate may exceed the result by this factor and leave the dtype's range: a partial
  // sum, or a gradient, a product that each framework multiplies in its own order.
  double slack = kResultSlack;
  // True if inputs are halves and small whole numbers, whose sums and products are exact.
  bool exact_values = false;
};

// The distance of one side from the truth.
struct Distance {
  double errors = 0;               // the largest error, in units of the error bar
  std::uint64_t index = kNoIndex;  // its element
  double ulps = 0;                 // its error in units in the last place of the true value
  std::uint64_t specials = 0;  // elements that are NaN or infinite where the truth is not the same
  bool operator==(const Distance&) const = default;
};

struct BarMeasurement {
  std::uint64_t count = 0;
  Distance test;
  Distance reference;
  // The values at the test's worst element, or at its first special one.
  std::complex<double> test_value;
  std::complex<double> reference_value;
  std::complex<double> true_value;
};

// Measures both sides of `input` against its truth.
BarMeasurement measure_bar(const BarInput& input);

// How far the truth of each element moves under perturbed inputs, as the error bar counts it: 0
// where it does not, infinite where it changes between a number, NaN and infinity. Reads neither
// side's values.
std::vector<double> moved_distances(const BarInput& input);

// The error that rounding can cause at each element, by its truth: one error bar. Reads neither
// side's values.
std::vector<double> error_units(const BarInput& input);

// Whether a float32 cannot hold the value. NaN counts as such.
bool needs_float64(std::complex<double> value);

// The largest finite magnitude; 0 if no value is finite.
double scale_of(Values values);

// The largest difference of test and reference, in units of the error bar without truth and
// conditioning. Infinite if only one of them is NaN or infinite. `scale` belongs to the whole
// reference, of which `input` may be a part.
double units_apart(const BarInput& input, double scale);

// Real numbers in the bytes of their dtype.
struct RealNumbers {
  DType dtype = DType::float32;
  std::span<const std::byte> bytes;
  bool signs = true;  // false: a number and its negative are equal
};
double scale_of(const RealNumbers& numbers);
// units_apart() of equally many real numbers on each side. Reads the settings of `input`, not its
// values. Several times faster.
double units_apart(const BarInput& input, double scale, const RealNumbers& test,
                   const RealNumbers& reference);
// True if units_apart() needs the scale.
bool needs_scale(const BarInput& input);

// A unit in the last place of a value of the dtype; 0 for whole numbers.
double ulp_of(DType dtype, double magnitude);

}  // namespace assay
