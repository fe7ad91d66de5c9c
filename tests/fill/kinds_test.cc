// The properties of each kind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "tensor.h"

namespace assay {
namespace {

using testing::Each;

std::map<double, int> occurrences(const std::vector<double>& drawn) {
  std::map<double, int> counts;
  for (const double value : drawn) ++counts[value];
  return counts;
}

TEST(Distinct, EveryRunOfRealsHasAllDifferentValues) {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    for (const std::int64_t extent : {1, 2, 3, 10, 255, 256, 1000, 4099, 20000}) {
      const auto count = static_cast<std::size_t>(extent);
      const auto drawn = values({FillKind::distinct, -0.5, 0.5, extent}, dtype, 2 * count);
      for (const std::size_t start : {std::size_t{0}, count}) {
        const auto row = drawn.begin() + static_cast<long>(start);
        EXPECT_EQ(std::set<double>(row, row + extent).size(), count) << name(dtype) << extent;
      }
    }
  }
}

TEST(Distinct, CoversTheRangeWithShortNumbers) {
  const auto drawn = values({FillKind::distinct, -0.5, 0.5, 1000}, DType::float32, 1000);
  const auto [low, high] = std::minmax_element(drawn.begin(), drawn.end());
  EXPECT_LT(*low, -0.49);
  EXPECT_GT(*high, 0.49);
  for (const double value : drawn) ASSERT_EQ(value * 1024, std::floor(value * 1024));
}

TEST(Distinct, OfMoreElementsThanValuesRepeatsAllOfThemEvenly) {
  // Up to 2^-4 float8_e4m3fn has 7 subnormals, two octaves of 8 and 2^-4 itself: 24 below zero,
  // zero, and 23 above, since the high end is open.
  const auto counts = occurrences(
      values({FillKind::distinct, -0.0625, 0.0625, 10000}, DType::float8_e4m3fn, 10000));
  EXPECT_EQ(counts.size(), 48U);
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, 10000.0 / 48, 1) << value;
  const auto bytes = occurrences(values({FillKind::distinct, 0, 10, 95}, DType::uint8, 95));
  EXPECT_EQ(bytes.size(), 10U);
  for (const auto& [value, count] : bytes) EXPECT_NEAR(count, 9.5, 0.5) << value;
}

TEST(Distinct, OfIntegersIsAPermutationSpreadOverTheRange) {
  for (const auto& [high, extent] : {std::pair{1000, 777}, {772, 777}, {1'000'000, 3000}}) {
    const auto count = static_cast<std::size_t>(extent);
    auto drawn =
        values({FillKind::distinct, -5, static_cast<double>(high), extent}, DType::int64, count);
    EXPECT_FALSE(std::is_sorted(drawn.begin(), drawn.end()));
    std::sort(drawn.begin(), drawn.end());
    for (std::size_t p = 0; p < count; ++p) {
      ASSERT_EQ(drawn[p], std::floor(static_cast<double>(p) * (high + 5) / extent) - 5);
    }
    EXPECT_EQ(std::set<double>(drawn.begin(), drawn.end()).size(), count);
  }
}

// Every position sees every value about equally often: 200 rows of 8 in 8x8 cells of mean 25 (49
// degrees of freedom; chi-squared beyond 130 has p < 1e-8).
TEST(Distinct, OrdersAreRandomAndDifferFromRowToRow) {
  const auto drawn = values({FillKind::distinct, 0, 8, 8}, DType::int32, 1600);
  double cells[8][8] = {};
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    ++cells[i % 8][static_cast<std::size_t>(drawn[i])];
  }
  double chi = 0;
  for (const auto& row : cells) {
    for (const double cell : row) chi += (cell - 25) * (cell - 25) / 25;
  }
  EXPECT_LT(chi, 130);
}

TEST(Increasing, GoesUpFromLowToHighInEveryRow) {
  for (const DTypeInfo& dtype : kDTypes) {
    if (dtype.kind == DTypeClass::complex) continue;
    constexpr std::size_t kRow = 300;
    const FillRule rule{FillKind::increasing, -4, 4, kRow};
    const auto drawn = values(rule, dtype.dtype, 3 * kRow);
    for (std::size_t row = 0; row < 3; ++row) {
      const auto begin = drawn.begin() + static_cast<long>(row * kRow);
      EXPECT_TRUE(std::is_sorted(begin, begin + kRow)) << dtype.name;
      if (dtype.kind != DTypeClass::floating) continue;
      EXPECT_LE(*begin, -3.5) << dtype.name;
      EXPECT_GE(begin[kRow - 1], 3.5) << dtype.name;
    }
  }
}

// Row i of the matrices in `drawn`, as (real, imaginary) pairs.
struct Matrix {
  const std::vector<double>& parts;
  std::size_t size;
  std::size_t step;   // parts of one element
  std::size_t batch;  // which matrix
  double at(std::size_t row, std::size_t column, std::size_t part) const {
    if (part >= step) return 0;
    return parts[((batch * size + row) * size + column) * step + part];
  }
};

TEST(Matrices, AreSymmetricAndTheirDiagonalRulesWhereItShould) {
  constexpr std::size_t kSize = 25;
  for (const DTypeInfo& dtype : kDTypes) {
    for (const FillKind kind : {FillKind::symmetric, FillKind::positive_definite}) {
      const FillRule rule{kind, -2, 3, kSize};
      const auto drawn = values(rule, dtype.dtype, 3 * kSize * kSize);
      const std::size_t step = dtype.kind == DTypeClass::complex ? 2 : 1;
      for (std::size_t batch = 0; batch < 3; ++batch) {
        const Matrix m{drawn, kSize, step, batch};
        for (std::size_t row = 0; row < kSize; ++row) {
          double others = 0;
          for (std::size_t column = 0; column < kSize; ++column) {
            ASSERT_EQ(m.at(row, column, 0), m.at(column, row, 0)) << dtype.name;
            ASSERT_EQ(m.at(row, column, 1), -m.at(column, row, 1)) << dtype.name;
            if (row != column) others += std::hypot(m.at(row, column, 0), m.at(row, column, 1));
          }
          if (kind == FillKind::positive_definite && dtype.kind != DTypeClass::boolean) {
            ASSERT_GT(m.at(row, row, 0), others) << dtype.name;
          }
        }
      }
    }
  }
}

TEST(Matrices, StayDominantWhereRoundingIsCoarse) {
  constexpr std::size_t kSize = 700;
  for (const DType dtype : {DType::bfloat16, DType::float16, DType::float32}) {
    const auto drawn = values({FillKind::positive_definite, 0.99, 1, kSize}, dtype, kSize * kSize);
    const Matrix m{drawn, kSize, 1, 0};
    for (const std::size_t row : {std::size_t{0}, kSize / 2, kSize - 1}) {
      double others = 0;
      for (std::size_t column = 0; column < kSize; ++column) {
        if (column != row) others += std::abs(m.at(row, column, 0));
      }
      EXPECT_GT(m.at(row, row, 0), others) << name(dtype);
    }
  }
}

TEST(Boxes, HaveAnExtentInsideTheRange) {
  for (const DTypeInfo& dtype : kDTypes) {
    if (dtype.kind == DTypeClass::complex) continue;
    const bool real = dtype.kind == DTypeClass::floating;
    const double high = real ? 100 : 5;
    const double least = real ? (dtype.size == 1 ? 0 : 5) : 1;
    const auto drawn = values({FillKind::boxes, 0, high, 1}, dtype.dtype, 4000);
    for (std::size_t i = 0; i < drawn.size(); i += 4) {
      ASSERT_GE(drawn[i], 0);
      ASSERT_GE(drawn[i + 2] - drawn[i], least) << dtype.name;
      ASSERT_GE(drawn[i + 3] - drawn[i + 1], least) << dtype.name;
      ASSERT_LT(drawn[i + 3], high);
    }
  }
}

TEST(Constant, IsTheLowEndAsTheTypeHoldsIt) {
  const FillRule rule{FillKind::constant, 2.5, 0, 1};
  EXPECT_THAT(values(rule, DType::bfloat16, 5), Each(2.5));
  EXPECT_THAT(values(rule, DType::int16, 5), Each(3.0));
  EXPECT_THAT(values(rule, DType::boolean, 5), Each(1.0));
  EXPECT_THAT(values({FillKind::constant, -1e9, 0, 1}, DType::int8, 5), Each(-128.0));
  EXPECT_THAT(values(rule, DType::complex64, 2), testing::ElementsAre(2.5, 0, 2.5, 0));
  EXPECT_THAT(values({FillKind::constant, INFINITY, 0, 1}, DType::float16, 5), Each(INFINITY));
}

// A list of values is written like a `constant` of each value, in every dtype.
TEST(Values, AreWhatConstantWrites) {
  const std::vector<double> listed{0,     -0.0, 1,    2.5,   -2.5, 1e9,      -1e9,
                                   1e300, 0.1,  1e-9, 65520, NAN,  INFINITY, -INFINITY};
  for (const DTypeInfo& dtype : kDTypes) {
    const std::size_t size = size_of(dtype.dtype);
    std::vector<std::byte> written(listed.size() * size);
    fill_values(listed, dtype.dtype, written);
    for (std::size_t i = 0; i < listed.size(); ++i) {
      std::vector<std::byte> constant(size);
      fill({FillKind::constant, listed[i], listed[i], 1}, {}, dtype.dtype, constant);
      EXPECT_EQ(std::memcmp(written.data() + i * size, constant.data(), size), 0)
          << dtype.name << " " << listed[i];
    }
  }
}

}  // namespace
}  // namespace assay
