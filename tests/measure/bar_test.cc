// The error bar, on cases that can be computed by hand.

#include "measure/bar.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "buffers.h"

namespace assay {
namespace {

using Column = std::vector<std::complex<double>>;

constexpr double kRounded = 1 + 0x1p-23;  // the float after 1: a reference that is not exact
constexpr double kInfinity = std::numeric_limits<double>::infinity();

BarMeasurement against(const Column& test, const Column& reference, const Column& truth,
                       const std::vector<Column>& moved = {}, double terms = 1,
                       DType dtype = DType::float32, bool jumps_excuse = true) {
  BarInput input{dtype, test, reference, truth, {}, terms, 0, 0, jumps_excuse};
  for (const Column& column : moved) input.moved.emplace_back(column);
  return measure_bar(input);
}

TEST(Ulp, IsThatOfTheDtype) {
  EXPECT_EQ(ulp_of(DType::float32, 1), 0x1p-23);
  EXPECT_EQ(ulp_of(DType::float32, 1.999), 0x1p-23);
  EXPECT_EQ(ulp_of(DType::float16, 4), 0x1p-8);
  EXPECT_EQ(ulp_of(DType::bfloat16, 1), 0x1p-7);
  EXPECT_EQ(ulp_of(DType::float32, 0), 0x1p-149);
  EXPECT_EQ(ulp_of(DType::int32, 5), 0);
}

TEST(Bar, CountsErrorsInUlpsOfTheTruth) {
  const BarMeasurement bar = against({1 + 0x1p-20}, {1}, {1});
  EXPECT_NEAR(bar.test.ulps, 8, 1e-9);
  EXPECT_NEAR(bar.test.errors, 8 / 0.75, 1e-6);
  EXPECT_EQ(bar.reference.errors, 0);
}

TEST(Bar, WhatTheInputsLastPlaceMovesIsNoError) {
  // sin(1e6) in float32: half a unit of the input moves the result by a hundredth.
  const BarMeasurement bar = against({0.35}, {0.34}, {0.345}, {{0.352}, {0.339}});
  EXPECT_LT(bar.test.errors, 1);
}

TEST(Bar, AProductOfComplexNumbersThatOverflowMayBeNan) {
  const auto specials = [&](DType dtype, double truth) {
    return against({{kNan, kNan}}, {{kInfinity, 0}}, {{truth, truth}}, {}, 1, dtype).test.specials;
  };
  EXPECT_EQ(specials(DType::complex64, 1e39), 0U);
  EXPECT_EQ(specials(DType::complex64, 1e30), 1U);
  EXPECT_EQ(against({kNan}, {kInfinity}, {1e39}).test.specials, 1U);  // a real one is infinite
}

TEST(Bar, AnInfinityOfComplexNumbersMayBeNan) {
  const auto specials = [&](std::complex<double> value, std::complex<double> truth, DType dtype) {
    return against({value}, {truth}, {truth}, {}, 1, dtype).test.specials;
  };
  EXPECT_EQ(specials({-kInfinity, 1}, {kNan, kNan}, DType::complex128), 0U);
  EXPECT_EQ(specials({kNan, kNan}, {kInfinity, 1}, DType::complex128), 0U);
  EXPECT_EQ(specials({-kInfinity, 1}, {kInfinity, 1}, DType::complex128), 1U);
  EXPECT_EQ(specials({1, 1}, {kNan, kNan}, DType::complex128), 1U);  // swallowed
  EXPECT_EQ(specials(-kInfinity, kNan, DType::float64), 1U);
}

TEST(Bar, ALibraryFunctionKnowsItsInput) {
  // cos(1.4519): half a unit of the input is 8 ulps of the result. A direct function does not lose
  // them.
  const Column moved{0.11877 + 0x1p-24};
  const Column test{0.11877 + 8 * 0x1p-27};
  EXPECT_LT(against(test, {0.11877 * kRounded}, {0.11877}, {moved}, 1).test.errors, 8);
  EXPECT_GT(against(test, {0.11877 * kRounded}, {0.11877}, {moved}, 0).test.errors, 8);
}

TEST(Bar, AComplexInfinityIsOneWhateverItsFinitePartIs) {
  // exp(710 + 1.57i): cos(1.57) is small enough for the real part, which PyTorch overflows.
  const std::complex<double> overflowed(kInfinity, kInfinity);
  const auto specials = [&](std::complex<double> value) {
    return against({value}, {overflowed}, {overflowed}, {}, 1, DType::complex128).test.specials;
  };
  EXPECT_EQ(specials({1.779e305, kInfinity}), 0U);
  EXPECT_EQ(specials({-kInfinity, kInfinity}), 1U);
  EXPECT_EQ(specials({1.0, 1.0}), 1U);
}

TEST(Bar, GrowsWithTheRootOfTheTermsThatAreAddedUp) {
  const BarMeasurement hundred = against({1 + 0x1p-19}, {kRounded}, {1}, {}, 100);
  const BarMeasurement many = against({1 + 0x1p-19}, {kRounded}, {1}, {}, 10'000);
  EXPECT_NEAR(hundred.test.errors, 16 / 10.0, 1e-3);
  EXPECT_NEAR(hundred.test.errors / many.test.errors, 10, 1e-3);
}

TEST(Bar, OfHalfPrecisionHasNoRoot) {
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    const double off = 1 + 20 * ulp_of(dtype, 1);
    const BarMeasurement measured = against({off}, {1 + ulp_of(dtype, 1)}, {1}, {}, 10'000, dtype);
    EXPECT_NEAR(measured.test.errors, 20, 0.1);
  }
}

TEST(Bar, OfFewTermsIsThreeQuartersOfTheLargestThingThatRoundingDoes) {
  BarInput input;
  input.dtype = DType::float32;
  const Column test = {1 + 0x1p-20, 4};  // eight ulps off
  const Column reference = {kRounded, 4};
  const Column truth = {1, 4};
  const Column moved = {1 + 0x1p-22, 4};  // by two ulps
  input.test = test;
  input.reference = reference;
  input.truth = truth;
  EXPECT_NEAR(measure_bar(input).test.errors, 8 / 0.75, 1e-3);
  input.moved = {moved};
  EXPECT_NEAR(measure_bar(input).test.errors, 4 / 0.75, 1e-3);
  input.moved.clear();
  input.scale_floor = 1;  // four ulps of 1 are one of 4
  EXPECT_NEAR(measure_bar(input).test.errors, 2 / 0.75, 1e-3);
  input.scale_floor = 0;
  input.unit_floor = 2;
  EXPECT_NEAR(measure_bar(input).test.errors, 4 / 0.75, 1e-3);
  // Without the scale of the terms, a sum that cancels cannot be recognised.
  input.unit_floor = 0;
  input.terms = 64;
  EXPECT_NEAR(measure_bar(input).test.errors, 1, 1e-3);
  input.dtype = DType::float64;
  const Column fine = {1 + 0x1p-49, 4.0 / 3};
  const Column third = {1, 4.0 / 3};
  input.test = fine;
  input.reference = input.truth = third;
  EXPECT_LT(measure_bar(input).test.errors, 1);
}

TEST(Bar, WhereNothingIsRoundedNeitherTermsNorScaleExcuse) {
  BarInput input;
  input.dtype = DType::float32;
  const Column test = {0.5 + 0x1p-21, 1024};  // eight ulps off
  const Column truth = {0.5, 1024};
  input.test = test;
  input.reference = input.truth = truth;
  input.terms = 10'000;
  input.scale_floor = input.unit_floor = 1;
  EXPECT_LT(measure_bar(input).test.errors,
            0.1);  // a sum of arbitrary values that happens to be exact
  input.exact_values = true;
  EXPECT_NEAR(measure_bar(input).test.errors, 8 / 0.75, 1e-3);
  // The truth is no more precise than float64, so a float64 result needs numbers with half of the
  // digits.
  const Column fine = {0.5 + 0x1p-50, 1024};
  input.dtype = DType::float64;
  input.test = fine;
  EXPECT_NEAR(measure_bar(input).test.errors, 8 / 0.75, 1e-3);
  const Column long_one = {0.5, 1024.0 / 3};
  const Column off_again = {0.5 + 0x1p-50, 1024.0 / 3};
  input.test = off_again;
  input.reference = input.truth = long_one;
  EXPECT_LT(measure_bar(input).test.errors, 1);
}

// 0.238 + 0.196 - 0.445, added up in memory of bfloat16.
TEST(Bar, AFloorOfSomeUlpsIsThatOfSumsWhoseReferenceMayBeExactByChance) {
  BarInput input;
  input.dtype = DType::bfloat16;
  const Column test = {-0.01171875, 0.4375};
  const Column truth = {-0.0107421875, 0.4375};
  input.test = test;
  input.reference = input.truth = truth;
  EXPECT_GT(measure_bar(input).test.errors, 20);
  input.scale_floor = 4;
  EXPECT_LT(measure_bar(input).test.errors, 1);
}

TEST(Bar, OfExactValuesTheReferenceShowsThatThereAreFewRoundings) {
  BarInput input;
  input.dtype = DType::float32;
  const Column test = {1 + 0x1p-20};
  const Column truth = {1 + 0x1p-25};  // a quarter of an ulp above 1
  const Column one = {1};
  const Column next = {1 + 0x1p-23};  // three quarters of one
  input.test = test;
  input.reference = one;
  input.truth = truth;
  input.terms = 10'000;
  input.scale_floor = 1;
  EXPECT_LT(measure_bar(input).test.errors, 0.1);
  input.exact_values = true;
  EXPECT_NEAR(measure_bar(input).test.errors, 7.75 / 0.75, 1e-3);
  input.reference = next;
  EXPECT_LT(measure_bar(input).test.errors, 0.1);
}

TEST(Bar, OfExponentialsAReferenceThatIsRoundedRightShowsNothing) {
  const auto errors = [](double unit_floor) {
    const Column test(100, 1 + 0x1p-20);
    const Column truth(100, 1 + 0x1p-25);
    const Column one(100, 1);
    BarInput input{DType::float32, test, one, truth, {}, 10'000, 1, unit_floor};
    input.exact_values = true;
    return measure_bar(input).test.errors;
  };
  EXPECT_GT(errors(0), 8);
  EXPECT_LT(errors(1), 0.1);
}

TEST(Bar, NanAndInfinityMustBeWhereTheTruthHasThem) {
  EXPECT_EQ(against({0}, {kNan}, {kNan}).test.specials, 1U);
  EXPECT_EQ(against({kNan}, {kNan}, {kNan}).test.specials, 0U);
  EXPECT_EQ(against({kInfinity}, {-kInfinity}, {-kInfinity}).test.specials, 1U);
  EXPECT_EQ(against({kNan}, {1}, {1}).test.specials, 1U);
  EXPECT_EQ(against({1}, {kNan}, {1}).test.specials, 0U);
  EXPECT_EQ(against({1}, {kNan}, {1}).reference.specials, 1U);
}

TEST(Bar, RoundingMayOverflowAtTheDtypesLimit) {
  EXPECT_EQ(against({kInfinity}, {3.4028e38}, {3.5e38}).test.specials, 0U);
  EXPECT_EQ(against({kInfinity}, {1e30}, {1e30}).test.specials, 1U);
  EXPECT_EQ(against({kInfinity}, {65504}, {65519}, {}, 1, DType::float16).test.specials, 0U);
}

TEST(Bar, AFunctionOfOneNumberOverflowsNoEarlierThanItsResult) {
  EXPECT_EQ(against({kInfinity}, {2.2e38}, {2.2e38}, {}, 1).test.specials, 0U);
  EXPECT_EQ(against({kInfinity}, {2.2e38}, {2.2e38}, {}, 0.5).test.specials, 1U);
  EXPECT_EQ(against({kInfinity}, {3.4028e38}, {3.5e38}, {}, 0.5).test.specials, 0U);
}

TEST(Bar, AGradientsIntermediateMayOverflowBeforeItsSmallUpstreamGradient) {
  // 1e-5 * 2 * 1e38, if the product with 2 is computed first.
  const Column infinite = {kInfinity};
  const Column truth = {2e33};
  BarInput input{DType::float32, infinite, truth, truth, {}};
  EXPECT_EQ(measure_bar(input).test.specials, 1U);
  input.slack = kGradientSlack;
  EXPECT_EQ(measure_bar(input).test.specials, 0U);
  const Column small = {1e20};
  input.reference = input.truth = small;
  EXPECT_EQ(measure_bar(input).test.specials, 1U);
}

TEST(Bar, SoMayThatOfTheTruthWhereNothingIsWider) {
  // 1e-5 * 2e308 in float64; its truth is the reference's own float64.
  const Column infinite = {kInfinity};
  const Column finite = {2e303};
  BarInput input{DType::float64, finite, infinite, infinite, {}};
  EXPECT_EQ(measure_bar(input).test.specials, 1U);
  input.slack = kGradientSlack;
  EXPECT_EQ(measure_bar(input).test.specials, 0U);
  input.dtype = DType::float32;  // float64 has room for it
  const Column of_float32 = {2e33};
  input.test = of_float32;
  EXPECT_EQ(measure_bar(input).test.specials, 1U);
}

TEST(Bar, TermsOfASumMayOverflowOnBothSidesOfZero) {
  EXPECT_EQ(against({kNan}, {1e39}, {1e39}, {}, 100).test.specials, 0U);
  EXPECT_EQ(against({kNan}, {1e39}, {1e39}, {}, 1).test.specials, 1U);
  EXPECT_EQ(against({kNan}, {1e30}, {1e30}, {}, 100).test.specials, 1U);
}

TEST(Apart, IsCountedInUnitsOfRoundingWithoutTheTruth) {
  const auto apart = [](const Column& test, const Column& reference, double scale_floor = 0) {
    BarInput input{DType::float32, test, reference, {}, {}};
    input.scale_floor = scale_floor;
    return units_apart(input, scale_of(input.reference));
  };
  EXPECT_NEAR(apart({1 + 0x1p-21}, {1}), 4 / 0.75, 1e-6);
  EXPECT_EQ(apart({kNan, kInfinity, 3}, {kNan, kInfinity, 3}), 0);
  EXPECT_EQ(apart({kNan}, {3}), kInfinity);
  EXPECT_EQ(apart({-kInfinity}, {kInfinity}), kInfinity);
  // In units of the largest element: 1/1024 has an ulp of 2^-33.
  EXPECT_NEAR(apart({1, 0x1p-10 + 0x1p-21}, {1, 0x1p-10}, 1), 4 / 0.75, 0.01);
}

// Real numbers as complex numbers.
Column widened(DType dtype, const Bytes& bytes) {
  Column column;
  visit(dtype, [&]<typename T>(Type<T>) {
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(T)) {
      const T value = load<T>(bytes.data() + i);
      if constexpr (std::is_arithmetic_v<T>) {
        column.emplace_back(static_cast<double>(value));
      } else if constexpr (std::is_same_v<T, Boolean>) {
        column.emplace_back(value.code);
      } else if constexpr (!kIsComplex<T>) {
        column.emplace_back(widen(value));
      }
    }
  });
  return column;
}

// Computed from the bytes and from complex numbers.
TEST(Apart, OfRealNumbersIsTheSameFromTheirBytes) {
  std::mt19937_64 random(7);
  const std::array specials = {0.0, -0.0, kNan, kInfinity, -kInfinity, 1e-42, 3e38, 1.0};
  for (const DTypeInfo& dtype : kDTypes) {
    if (dtype.kind == DTypeClass::complex) continue;
    const bool real = dtype.kind == DTypeClass::floating;
    for (int round = 0; round < 400; ++round) {
      std::vector<double> left(33);
      std::vector<double> right(33);
      for (std::size_t i = 0; i < right.size(); ++i) {
        right[i] = std::ldexp(static_cast<double>(random() % 4096), -8) - (real ? 8 : 0);
        left[i] = right[i] * (1 + std::ldexp(static_cast<double>(random() % 5) - 2, -8));
        if (!real || round % 4 != 0) continue;
        if (random() % 8 == 0) right[i] = specials.at(random() % specials.size());
        if (random() % 2 == 0) left[i] = right[i];
      }
      const auto test = buffer(dtype.dtype, left);
      const auto reference = buffer(dtype.dtype, right);
      const Column as_test = widened(dtype.dtype, test);
      const Column as_reference = widened(dtype.dtype, reference);
      BarInput input{dtype.dtype, as_test, as_reference, {}, {}};
      input.terms = std::array{0.5, 1.0, 5.0, 100.0}[random() % 4];
      input.scale_floor = random() % 2 == 0 ? 0 : 2;
      input.unit_floor = random() % 2 == 0 ? 0 : 3;
      const RealNumbers numbers{dtype.dtype, reference};
      const double scale = scale_of(input.reference);
      ASSERT_EQ(scale_of(numbers), scale) << dtype.name;
      ASSERT_DOUBLE_EQ(units_apart(input, scale, {dtype.dtype, test}, numbers),
                       units_apart(input, scale))
          << dtype.name << " in round " << round;
      if (!needs_scale(input)) {
        ASSERT_EQ(units_apart(input, 0), units_apart(input, scale));
      }
    }
  }
}

TEST(Apart, OfMagnitudesKnowsNoSigns) {
  const auto test = buffer(DType::float32, {-1, 2});
  const auto reference = buffer(DType::float32, {1, -2});
  const BarInput input;
  EXPECT_GT(units_apart(input, 2, {DType::float32, test}, {DType::float32, reference}), 1e6);
  EXPECT_EQ(
      units_apart(input, 2, {DType::float32, test, false}, {DType::float32, reference, false}), 0);
}

TEST(Bar, AJumpExcusesOnlyWhereInputsAreNotExact) {
  // round(0.5) is 0; a perturbed input gives 1.
  EXPECT_EQ(against({1}, {0}, {0}, {{1}}).test.errors < 8, true);
  EXPECT_GT(against({1}, {0}, {0}, {{1}}, 1, DType::float32, false).test.errors, 1e6);
  // 0.5 < 0.5 is false; a perturbed input makes it true.
  EXPECT_LT(against({1}, {0}, {0}, {{1}}, 1, DType::boolean, true).test.errors, 8);
  EXPECT_GT(against({1}, {0}, {0}, {{1}}, 1, DType::boolean, false).test.errors, 1e6);
}

TEST(Bar, WholeNumbersAreRightOrWrong) {
  const BarMeasurement bar = against({3}, {2}, {2}, {}, 1, DType::int64);
  EXPECT_EQ(bar.test.errors, kInfinity);
  EXPECT_EQ(bar.reference.errors, 0);
  EXPECT_EQ(against({2}, {3}, {2}, {}, 1, DType::int64).reference.errors, kInfinity);
}

TEST(Bar, WhatBothSidesHaveToTheBitIsNotJudged) {
  EXPECT_EQ(against({5}, {5}, {7}).test.errors, 0);
}

}  // namespace
}  // namespace assay
