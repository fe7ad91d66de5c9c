#include "fill/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fill/grid.h"

namespace assay {
namespace {

template <typename T>
class Narrow : public testing::Test {};
using NarrowTypes = testing::Types<Float16, BFloat16, Float8E4M3, Float8E5M2>;
TYPED_TEST_SUITE(Narrow, NarrowTypes);

template <typename T>
T code(std::uint32_t bits) {
  return {static_cast<decltype(T::code)>(bits)};
}

// The value of a code by the definition of the format, in powers of two.
template <typename T>
double by_definition(std::uint32_t magnitude) {
  const int exponent = static_cast<int>(magnitude >> T::kMantissa);
  const int fraction = static_cast<int>(magnitude & ((1U << T::kMantissa) - 1));
  if (exponent == 0) return std::ldexp(fraction, 1 - T::kBias - T::kMantissa);
  return std::ldexp((1 << T::kMantissa) + fraction, exponent - T::kBias - T::kMantissa);
}

TYPED_TEST(Narrow, EveryFiniteCodeHasItsDefinedValueAndComesBack) {
  using T = TypeParam;
  for (std::uint32_t magnitude = 0; magnitude < T::kOverflow; ++magnitude) {
    for (const std::uint32_t sign : {0U, T::kSignBit}) {
      const double value = widen(code<T>(sign | magnitude));
      ASSERT_EQ(std::abs(value), by_definition<T>(magnitude));
      ASSERT_EQ(std::signbit(value), sign != 0);
      ASSERT_EQ(narrow<T>(static_cast<float>(value)).code, sign | magnitude);
    }
  }
}

// Rounding to nearest even is determined by the midpoints between neighbours and the values beside
// them.
TYPED_TEST(Narrow, RoundsToNearestAndTiesToEven) {
  using T = TypeParam;
  for (std::uint32_t magnitude = 0; magnitude + 1 < T::kOverflow; ++magnitude) {
    const double low = by_definition<T>(magnitude);
    const double high = by_definition<T>(magnitude + 1);
    const auto middle = static_cast<float>((low + high) / 2);
    if (middle != (low + high) / 2) continue;  // no float: below bfloat16's second subnormal
    const float infinity = std::numeric_limits<float>::infinity();
    ASSERT_EQ(narrow<T>(middle).code, magnitude + magnitude % 2);
    ASSERT_EQ(narrow<T>(std::nextafter(middle, 0.0F)).code, magnitude);
    ASSERT_EQ(narrow<T>(std::nextafter(middle, infinity)).code, magnitude + 1);
    ASSERT_EQ(narrow<T>(-middle).code, T::kSignBit | (magnitude + magnitude % 2));
  }
}

TYPED_TEST(Narrow, KeepsWhatIsNotFinite) {
  using T = TypeParam;
  EXPECT_TRUE(std::isnan(widen(narrow<T>(std::nanf("")))));
  const float wide = widen(narrow<T>(-std::numeric_limits<float>::infinity()));
  if (T::kOverflow == T::kNan) {
    EXPECT_TRUE(std::isnan(wide));
  } else {
    EXPECT_EQ(wide, -std::numeric_limits<float>::infinity());
  }
  for (std::uint32_t magnitude = T::kOverflow + 1; magnitude < T::kSignBit; ++magnitude) {
    ASSERT_TRUE(std::isnan(widen(code<T>(magnitude))));
  }
}

TEST(Grid, WithItsOwnQuantumCountsTheFormat) {
  for (const std::uint32_t magnitude : {0U, 1U, 0x3FFU, 0x400U, 0x3C00U, 0x7BFFU}) {
    const auto number = static_cast<std::int64_t>(magnitude);
    EXPECT_EQ(grid_value(number, 10, -24), by_definition<Float16>(magnitude));
    EXPECT_EQ(grid_value(-number, 10, -24), -by_definition<Float16>(magnitude));
  }
}

TEST(Grid, WithACoarserQuantumIsEvenNearZeroAndTheFormatsOwnFurtherOut) {
  EXPECT_EQ(grid_value(3, 2, -1), 1.5);
  EXPECT_EQ(grid_value(8, 2, -1), 4.0);  // 2^(2+1) steps of a half
  EXPECT_EQ(grid_value(9, 2, -1), 5.0);  // from there two bits of fraction step by one
  EXPECT_EQ(grid_value(12, 2, -1), 8.0);
  EXPECT_EQ(grid_value(13, 2, -1), 10.0);
}

}  // namespace
}  // namespace assay
