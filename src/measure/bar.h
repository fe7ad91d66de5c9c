#pragma once

// The error bar: how far a result lies from the truth, measured by what rounding could have done.
//
// The truth is the reference function in float64 on the same inputs. What rounding could have done
// to an element is a unit in the last place of the result there, and how far the truth moves when
// every input moves by up to half a unit in its own last place (its conditioning), both times the
// square root of the number of terms that a reduction adds up: rounding errors of n additions
// behave like a random walk (Higham and Mary, "A new approach to probabilistic rounding error
// analysis", SIAM J. Sci. Comput. 41(5), 2019). A result of few roundings has less: not the sum of
// these but three quarters of the largest of them. Few are those of few terms, and of exact inputs
// where the reference rounds every element right. And where nothing had to be rounded, as the
// reference of exact inputs or of one term shows that has every element exactly, it is three
// quarters of the unit alone.

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "case/dtype.h"
#include "measure/measure.h"

namespace assay {

using Values = std::span<const std::complex<double>>;

// What adds up no more terms than this is of few terms…
inline constexpr double kFewTerms = 64;
// … and this share of the largest thing that rounding does to it is its bar.
inline constexpr double kFewShare = 0.75;

inline constexpr double kResultSlack = 4;
// Of upstream gradients in ±4 one in 2^24 is so small that a product without it is this much
// larger.
inline constexpr double kGradientSlack = 0x1p24;

struct BarInput {
  DType dtype = DType::float32;  // of the result: what it is rounded to
  Values test;
  Values reference;
  Values truth;
  std::vector<Values> moved;  // the truth under inputs that were moved
  double terms = 1;           // that a reduction adds up for one element
                              // (less than 1: a library function of that one element, good to
                              // a few ulps wherever it is: its conditioning excuses nothing)
  // What is always left to a result: so many ulps of its largest value, and of 1.
  double scale_floor = 0;
  double unit_floor = 0;
  // Whether a jump of the truth under moved inputs excuses any value: not where inputs are exact.
  bool jumps_excuse = true;
  // By what factor an intermediate may be larger or smaller than the result and leave the dtype:
  // half of an exponential (sinh), or a gradient, a product that each framework multiplies in its
  // own order.
  double slack = kResultSlack;
  // Inputs are halves and small whole numbers: sums and products of them need no rounding.
  bool exact_values = false;
};

// One side against the truth.
struct Distance {
  double errors = 0;               // the largest error, in units of what rounding could have done
  std::uint64_t index = kNoIndex;  // where
  double ulps = 0;                 // the same in units in the last place of the true value
  std::uint64_t specials = 0;      // elements that are NaN or infinite where the truth is not so
  bool operator==(const Distance&) const = default;
};

struct BarMeasurement {
  std::uint64_t count = 0;
  Distance test;
  Distance reference;
  // At the test's worst element, or its first special one.
  std::complex<double> test_value;
  std::complex<double> reference_value;
  std::complex<double> true_value;
};

BarMeasurement measure_bar(const BarInput& input);

// The largest magnitude among those that are finite; 0 where none is.
double scale_of(Values values);

// The largest difference of test and reference in units of what rounding could have done, without
// the truth and its conditioning; infinite where one of them is NaN or infinite and the other is
// not so. `scale` is that of the whole reference, of which `input` may be a part.
double units_apart(const BarInput& input, double scale);

// Real numbers as their dtype has them.
struct RealNumbers {
  DType dtype = DType::float32;
  std::span<const std::byte> bytes;
  bool signs = true;  // false: a number and its negative are one
};
double scale_of(const RealNumbers& numbers);
// units_apart() of as many real numbers on either side; of `input` that of the result is looked at,
// not its values. Several times as fast.
double units_apart(const BarInput& input, double scale, const RealNumbers& test,
                   const RealNumbers& reference);
// Whether the scale has a say in it.
bool needs_scale(const BarInput& input);

// A unit in the last place of a value as the dtype has it; 0 for whole numbers.
double ulp_of(DType dtype, double magnitude);

}  // namespace assay
