// The numbers of a measurement, on pairs that can be computed by hand.

#include "measure/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "buffers.h"

namespace assay {
namespace {

using testing::ElementsAre;

Measurement compare(DType dtype, const std::vector<double>& left, const std::vector<double>& right,
                    Tolerance under = {}) {
  return measure(dtype, buffer(dtype, left), buffer(dtype, right), under);
}

TEST(Measure, GivesTheDifferencesOfFinitePairs) {
  const auto m = compare(DType::float64, {1, 2, 3, -4}, {1, 2.5, 2, -4.25}, {0.3, 0.1});
  EXPECT_EQ(m.count, 4U);
  EXPECT_EQ(m.bit_equal, 1U);
  EXPECT_EQ(m.max_abs, 1.0);
  EXPECT_EQ(m.max_rel, 0.5);
  EXPECT_EQ(m.atol_needed[0], 1.0);
  EXPECT_DOUBLE_EQ(m.atol_needed[6], 0.8);  // 1 - 0.1·2, more than 0.5 - 0.25 and 0.25 - 0.425
  EXPECT_EQ(m.beyond, 1U);                  // |3 - 2| > 0.3 + 0.2; 0.5 is within 0.3 + 0.25
  EXPECT_EQ(m.first.index, 2U);
  EXPECT_EQ(m.worst.index, 2U);
  EXPECT_THAT(m.worst.left, ElementsAre(3.0, 0.0));
  EXPECT_THAT(m.worst.right, ElementsAre(2.0, 0.0));
  EXPECT_DOUBLE_EQ(m.worst.excess, 0.8);
}

TEST(Measure, FindsTheFirstAndTheWorstOffenderApart) {
  std::vector<double> left(5000);
  std::vector<double> right(5000);
  left[2100] = 0.25;
  left[2101] = 0.5;
  left[4090] = 0.5;  // as bad, but later
  const auto m = compare(DType::float32, left, right, {0.125, 0});
  EXPECT_EQ(m.beyond, 3U);
  EXPECT_EQ(m.first.index, 2100U);
  EXPECT_EQ(m.worst.index, 2101U);
  EXPECT_EQ(m.worst.excess, 0.5);
  const auto fine = compare(DType::float32, left, right, {0.5, 0});
  EXPECT_EQ(fine.beyond, 0U);
  EXPECT_FALSE(fine.first);
  EXPECT_EQ(fine.worst.index, 2101U);  // shown although it agrees
}

TEST(Measure, CountsWhereNanAndInfinityDisagree) {
  const auto m = compare(DType::float16, {kNan, kNan, 1, kInf, kInf, 1, -kInf, 2},
                         {kNan, 1, kNan, kInf, -kInf, kInf, 3, 2}, {100, 100});
  EXPECT_EQ(m.both_nan, 1U);
  EXPECT_EQ(m.nan_left_only, 1U);
  EXPECT_EQ(m.nan_right_only, 1U);
  EXPECT_EQ(m.inf_disagree, 3U);
  EXPECT_EQ(m.bit_equal, 3U);
  EXPECT_EQ(m.beyond, 5U);
  EXPECT_EQ(m.first.index, 1U);
  EXPECT_EQ(m.worst.index, 1U);
  EXPECT_EQ(m.worst.excess, kInf);
  EXPECT_EQ(m.max_abs, 0.0);
  EXPECT_EQ(m.ulp_histogram[0], 2U);  // the equal infinities and 2
  EXPECT_FALSE(special_values_agree(m));
  EXPECT_FALSE(agrees(m, {kInf, 0}));
}

TEST(Measure, ComplexNumbersDifferByTheModulus) {
  const auto m = compare(DType::complex64, {3, 4, 0, 0}, {0, 0, 0, 0}, {4.5, 0});
  EXPECT_EQ(m.count, 2U);
  EXPECT_EQ(m.max_abs, 5.0);
  EXPECT_THAT(m.worst.left, ElementsAre(3.0, 4.0));
  const auto wide = compare(DType::complex128, {3e300, 4e300}, {0, 0});
  EXPECT_DOUBLE_EQ(wide.max_abs, 5e300);  // its square is beyond double
  const auto nan =
      compare(DType::complex128, {kNan, 1, kInf, 2, kInf, 2}, {kNan, 5, kInf, 2, kInf, 3});
  EXPECT_EQ(nan.both_nan, 1U);
  EXPECT_EQ(nan.inf_disagree, 1U);
  EXPECT_EQ(nan.beyond, 1U);
}

TEST(Measure, IntegersAreSubtractedExactly) {
  const std::vector<std::int64_t> left{std::numeric_limits<std::int64_t>::max(), 1,
                                       std::numeric_limits<std::int64_t>::min()};
  const std::vector<std::int64_t> right{left[0] - 1, 1, std::numeric_limits<std::int64_t>::max()};
  const auto one = measure(DType::int64, raw<std::int64_t>({left[0], left[1]}),
                           raw<std::int64_t>({right[0], right[1]}), {});
  EXPECT_EQ(one.max_abs, 1.0);  // as doubles they are equal
  EXPECT_EQ(one.beyond, 1U);
  const auto all = measure(DType::int64, raw(left), raw(right), {});
  EXPECT_EQ(all.max_abs, 0x1p64);
  const std::vector<std::uint64_t> low{0};
  const std::vector<std::uint64_t> high{~std::uint64_t{0}};
  EXPECT_EQ(measure(DType::uint64, raw(low), raw(high), {}).max_abs, 0x1p64);
  EXPECT_EQ(compare(DType::uint8, {3}, {250}).max_abs, 247.0);
}

TEST(Measure, BoolsDifferByOne) {
  const std::vector<std::uint8_t> left{0, 1, 1, 0};
  const std::vector<std::uint8_t> right{0, 2, 0, 0};  // 2 is true as well
  const auto m = measure(DType::boolean, raw(left), raw(right), {});
  EXPECT_EQ(m.bit_equal, 2U);
  EXPECT_EQ(m.beyond, 1U);
  EXPECT_EQ(m.max_abs, 1.0);
}

TEST(Measure, CountsDistancesInUnitsOfTheLastPlace) {
  // Neighbours by definition: nextafter.
  std::vector<float> left{1.0F, 1.0F, 1.0F, 0.0F, -0.0F, 1.0F};
  std::vector<float> right = left;
  right[1] = std::nextafter(1.0F, 2.0F);
  for (int i = 0; i < 5; ++i) right[2] = std::nextafter(right[2], 0.0F);
  right[3] = -std::numeric_limits<float>::denorm_min();
  left[3] = std::numeric_limits<float>::denorm_min();
  right[4] = 0.0F;
  right[5] = -1.0F;
  const auto m = measure(DType::float32, raw(left), raw(right), {});
  EXPECT_EQ(m.ulp_histogram[0], 2U);  // 1 = 1 and the two zeros
  EXPECT_EQ(m.ulp_histogram[1], 1U);
  EXPECT_EQ(m.ulp_histogram[2], 1U);   // 2 from one side of zero to the other
  EXPECT_EQ(m.ulp_histogram[3], 1U);   // 5
  EXPECT_EQ(m.ulp_histogram[31], 1U);  // 2 · 0x3F800000
  const auto far = compare(DType::float64, {1, 1}, {2, 1 + 0x1p-52});
  EXPECT_EQ(far.ulp_histogram[kUlpBuckets - 1], 1U);  // 2^52 values apart
  EXPECT_EQ(far.ulp_histogram[1], 1U);
  EXPECT_EQ(compare(DType::bfloat16, {1}, {1.0078125}).ulp_histogram[1], 1U);
}

TEST(Measure, NothingIsComparedInEmptyBuffers) {
  const auto m = measure(DType::float32, {}, {}, {1, 1});
  Measurement nothing;
  nothing.under = {1, 1};
  EXPECT_EQ(m, nothing);
  EXPECT_TRUE(agrees(m, {0, 0}));
}

TEST(Measure, DifferencesThatOverflowAreInfinite) {
  const auto m = compare(DType::float32, {3e38}, {-3e38}, {1, 0});
  EXPECT_EQ(m.max_abs, kInf);
  EXPECT_EQ(m.beyond, 1U);
  EXPECT_EQ(m.worst.index, 0U);
  EXPECT_TRUE(special_values_agree(m));
}

// Random pairs, with differences of all sizes, some zeros, NaN and infinities.
std::pair<Bytes, Bytes> random_pair(DType dtype, std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> left;
  std::vector<double> right;
  for (std::size_t i = 0; i < count; ++i) {
    const double b = random() % 10 == 0 ? 0 : normal(random);
    right.push_back(b);
    left.push_back(b + normal(random) * std::pow(10.0, -static_cast<double>(random() % 8)));
  }
  return {buffer(dtype, left), buffer(dtype, right)};
}

// On the grid agrees() is exact: it compares the needed atol with the given one.
TEST(Judging, OnTheGridEqualsMeasuringUnderThatTolerance) {
  for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16, DType::complex64}) {
    const auto [left, right] = random_pair(dtype, 300, 7);
    const auto stored = measure(dtype, left, right, {12345, 1});
    for (std::size_t g = 0; g < kRtolGrid.size(); ++g) {
      const bool coarse = size_of(dtype) <= 2 && kRtolGrid[g] < 1e-3;
      const double needed = stored.atol_needed[g];
      for (const double atol : {needed * 0.999, needed, needed * 1.001, 0.0}) {
        const Tolerance tolerance{atol, coarse ? 0 : kRtolGrid[g]};
        const bool direct = measure(dtype, left, right, tolerance).beyond == 0;
        EXPECT_EQ(agrees(stored, tolerance), direct) << name(dtype) << g << " " << atol;
      }
    }
  }
}

TEST(Judging, BetweenGridPointsAPassIsSure) {
  int passes = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    for (const DType dtype : {DType::float32, DType::float16}) {
      const auto [left, right] = random_pair(dtype, 20, seed);
      const auto stored = measure(dtype, left, right, {});
      for (const double rtol : {3e-7, 1.3e-6, 5e-4, 1.6e-2, 0.05, 0.3}) {
        const double atol = atol_sufficient(stored, rtol) * (1 + 1e-6);
        EXPECT_LE(atol, stored.atol_needed[0] * (1 + 1e-6));
        if (agrees(stored, {atol, rtol})) {
          ++passes;
          EXPECT_EQ(measure(dtype, left, right, {atol, rtol}).beyond, 0U) << seed << " " << rtol;
        }
      }
    }
  }
  EXPECT_EQ(passes, 200 * 2 * 6);  // every one is judged to pass at what is said to suffice
}

TEST(Judging, AnRtolThatIsNoneNeverPasses) {
  const auto m = compare(DType::float32, {1}, {1});
  EXPECT_FALSE(agrees(m, {1, kNan}));
  EXPECT_FALSE(agrees(m, {1, -1}));
}

TEST(Append, GivesWhatMeasuringAtOnceGives) {
  for (const DType dtype : {DType::float32, DType::int16, DType::complex64}) {
    const auto [left, right] = random_pair(dtype, 8000, 3);  // parts
    const Tolerance under{1e-2, 1e-2};
    const auto whole = measure(dtype, left, right, under);
    for (const std::size_t cut : {0U, 1U, 1024U, 3000U, 4000U}) {
      const std::size_t bytes = cut * size_of(dtype);
      auto head =
          measure(dtype, std::span(left).first(bytes), std::span(right).first(bytes), under);
      append(head, measure(dtype, std::span(left).subspan(bytes), std::span(right).subspan(bytes),
                           under));
      EXPECT_EQ(head, whole) << name(dtype) << " cut at " << cut;
    }
  }
}

}  // namespace
}  // namespace assay
