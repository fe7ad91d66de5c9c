// The fill kinds at the edges of a type.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "tensor.h"

namespace assay {
namespace {

constexpr auto kBoth = static_cast<std::int64_t>(Signs::both);
constexpr auto kPositive = static_cast<std::int64_t>(Signs::positive);
constexpr auto kShare = static_cast<std::int64_t>(Signs::share);
constexpr double kHuge = 1.7e308;

std::size_t count_if(const std::vector<double>& drawn, bool (*test)(double)) {
  return static_cast<std::size_t>(std::count_if(drawn.begin(), drawn.end(), test));
}

TEST(Magnitudes, ReachFromSubnormalToTheLargestOfEveryDtype) {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    const auto drawn = values({FillKind::magnitudes, 0, kHuge, kBoth}, dtype, 5000);
    EXPECT_TRUE(std::all_of(drawn.begin(), drawn.end(), [](double v) { return std::isfinite(v); }))
        << name(dtype);
    EXPECT_GT(count_if(drawn, [](double v) { return v > 4000; }), 50U) << name(dtype);
    EXPECT_GT(count_if(drawn, [](double v) { return std::abs(v) < 1e-5; }), 50U) << name(dtype);
    EXPECT_GT(count_if(drawn, [](double v) { return v < 0; }), 2000U) << name(dtype);
  }
  const auto wide = values({FillKind::magnitudes, 0, kHuge, kBoth}, DType::float32, 5000);
  EXPECT_GT(count_if(wide, [](double v) { return std::abs(v) > 1e37; }), 5U);
  EXPECT_GT(count_if(wide, [](double v) { return v != 0 && std::abs(v) < 1e-38; }), 5U);
}

TEST(Magnitudes, OfAHandfulOfElementsSeeWhereFunctionsBend) {
  // silu's gradient, whose exponential overflows below -88.
  int seen = 0;
  for (std::uint32_t tensor = 0; tensor < 100; ++tensor) {
    FillKey key = kKey;
    key.tensor = tensor;
    const auto drawn = values({FillKind::magnitudes, 0, kHuge, kBoth}, DType::float32, 20, key);
    seen += std::any_of(drawn.begin(), drawn.end(), [](double v) { return v < -89; }) ? 1 : 0;
  }
  EXPECT_GT(seen, 95);
}

TEST(Magnitudes, KeepTheirSignAndTheirShare) {
  for (const double value :
       values({FillKind::magnitudes, 1e-6, 1e6, kPositive}, DType::float32, 999)) {
    EXPECT_GE(value, 0x1p-20);
    EXPECT_LE(value, 1e6);
  }
  const auto shares = values({FillKind::magnitudes, 1e-6, 1, kShare}, DType::float64, 999);
  for (const double value : shares) EXPECT_TRUE(value >= 0 && value <= 1) << value;
  EXPECT_GT(count_if(shares, [](double v) { return v > 0.99; }), 100U);
  EXPECT_GT(count_if(shares, [](double v) { return v < 0.01; }), 100U);
}

TEST(Magnitudes, OfIntegersHaveEveryCountOfBitsAndTheExtremes) {
  const auto drawn = values({FillKind::magnitudes, 0, kHuge, kBoth}, DType::int32, 5000);
  const std::set<double> seen(drawn.begin(), drawn.end());
  EXPECT_TRUE(seen.contains(2147483647.0));
  EXPECT_TRUE(seen.contains(-2147483648.0));
  EXPECT_TRUE(seen.contains(0));
  EXPECT_GT(count_if(drawn, [](double v) { return std::abs(v) < 100; }), 300U);
  const auto positive = values({FillKind::magnitudes, 1, kHuge, kPositive}, DType::int64, 5000);
  EXPECT_EQ(count_if(positive, [](double v) { return v < 1; }), 0U);
}

TEST(WithNan, HasSomeInTheFirstRowAndRowsWithout) {
  const auto drawn = values({FillKind::with_nan, -0.5, 0.5, 8}, DType::float32, 800);
  int clean = 0;
  for (std::size_t row = 0; row < 100; ++row) {
    const auto at = drawn.begin() + static_cast<long>(8 * row);
    const auto nans = std::count_if(at, at + 8, [](double v) { return std::isnan(v); });
    if (row == 0) {
      EXPECT_GT(nans, 0);
    }
    clean += nans == 0 ? 1 : 0;
  }
  EXPECT_GT(clean, 15);
  EXPECT_LT(clean, 60);
  EXPECT_TRUE(std::isnan(values({FillKind::with_nan, 0, 1, 1}, DType::float16, 1)[0]));
}

TEST(WithInfinity, HasRowsOfOneSignOfBothAndOfNone) {
  const auto drawn = values({FillKind::with_infinity, -0.5, 0.5, 16}, DType::bfloat16, 16 * 200);
  std::set<int> kinds;
  for (std::size_t row = 0; row < 200; ++row) {
    const auto at = drawn.begin() + static_cast<long>(16 * row);
    const bool up = std::any_of(at, at + 16, [](double v) { return v > 1; });
    const bool down = std::any_of(at, at + 16, [](double v) { return v < -1; });
    kinds.insert((up ? 1 : 0) + (down ? 2 : 0));
    EXPECT_TRUE(std::none_of(at, at + 16, [](double v) { return std::isnan(v); }));
  }
  EXPECT_EQ(kinds, (std::set<int>{0, 1, 2, 3}));
}

TEST(Halves, AreHalvesOfWholeNumbers) {
  const auto drawn = values({FillKind::halves, -3, 3.5, 1}, DType::float32, 1000);
  const std::set<double> seen(drawn.begin(), drawn.end());
  EXPECT_EQ(seen.size(), 13U);
  EXPECT_EQ(*seen.begin(), -3);
  EXPECT_EQ(*seen.rbegin(), 3);
  EXPECT_TRUE(seen.contains(0.5) && seen.contains(0));
}

TEST(Ends, HaveBothEndsAndARepeatedNumber) {
  for (const DType dtype : {DType::int64, DType::int32, DType::float32}) {
    for (std::uint32_t tensor = 0; tensor < 50; ++tensor) {
      FillKey key = kKey;
      key.tensor = tensor;
      const auto drawn = values({FillKind::ends, 0, 1e6, 6}, dtype, 6, key);
      const std::set<double> seen(drawn.begin(), drawn.end());
      EXPECT_TRUE(seen.contains(0) && seen.contains(999'999)) << name(dtype) << tensor;
      EXPECT_LT(seen.size(), 6U) << name(dtype) << tensor;
    }
  }
}

TEST(Corners, HaveBothZerosAndATie) {
  for (std::uint32_t tensor = 0; tensor < 50; ++tensor) {
    FillKey key = kKey;
    key.tensor = tensor;
    const auto drawn = values({FillKind::corners, -3, 3.5, 5}, DType::float32, 5, key);
    const auto zeros = [&](bool negative) {
      return std::any_of(drawn.begin(), drawn.end(),
                         [=](double v) { return v == 0 && std::signbit(v) == negative; });
    };
    EXPECT_TRUE(zeros(false) && zeros(true)) << tensor;
    EXPECT_LT((std::set<double>(drawn.begin(), drawn.end()).size()), 5U) << tensor;
  }
  const auto positive = values({FillKind::corners, 0.5, 4, 8}, DType::float32, 8);
  EXPECT_TRUE(std::all_of(positive.begin(), positive.end(), [](double v) { return v >= 0.5; }));
}

TEST(Rows, AreFullEmptyAndMixed) {
  const auto drawn = values({FillKind::rows, 0, 2, 20}, DType::boolean, 60);
  const auto ones = [&](int row) { return std::count(&drawn[row * 20], &drawn[row * 20] + 20, 1); };
  EXPECT_EQ(ones(0), 20);
  EXPECT_EQ(ones(1), 0);
  EXPECT_TRUE(ones(2) > 0 && ones(2) < 20);
}

TEST(Edges, AnyPartOfATensorHasTheSameBits) {
  for (const FillKind kind :
       {FillKind::magnitudes, FillKind::with_nan, FillKind::with_infinity, FillKind::halves,
        FillKind::ends, FillKind::corners, FillKind::rows}) {
    const FillRule rule{kind, kind == FillKind::magnitudes ? 1e-3 : -2, 1e3, 2};
    for (const DType dtype : {DType::float32, DType::complex64, DType::int64}) {
      const auto whole = make(rule, dtype, 100);
      const auto part = make(rule, dtype, 40, 60);
      EXPECT_TRUE(
          std::equal(part.begin(), part.end(), whole.end() - static_cast<long>(part.size())))
          << static_cast<int>(kind) << name(dtype);
    }
  }
}

}  // namespace
}  // namespace assay
