// A stored measurement judged under another tolerance than the one that it was made with.

#include "verdict/within.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "record.h"

namespace assay {
namespace {

bool stored_within(const Measurement& measured, Tolerance asked) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(testing::add_measurement(builder, measured));
  const auto* stored = flatbuffers::GetRoot<wire::Measurement>(builder.GetBufferPointer());
  return within(*stored, asked.atol, asked.rtol, measured.under.atol, measured.under.rtol);
}

// |a − b| ≤ atol + rtol·|b| for every element, as its definition says, in float64 (of float64 data,
// where that is also what the measurement computes in).
bool agrees_by_definition(const std::vector<double>& a, const std::vector<double>& b,
                          Tolerance asked) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::isinf(a[i]) && a[i] == b[i]) continue;
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return false;
    if (std::fma(-asked.rtol, std::abs(b[i]), std::abs(a[i] - b[i])) > asked.atol) return false;
  }
  return true;
}

struct Data {
  std::vector<double> left;
  std::vector<double> right;
};

Data random_data(std::mt19937_64& random) {
  std::uniform_real_distribution<double> exponent(-8, 1);
  std::normal_distribution<double> normal;
  Data data;
  const std::size_t count = 1 + random() % 40;
  const double noise = std::pow(10.0, exponent(random));
  for (std::size_t i = 0; i < count; ++i) {
    const double value = normal(random) * std::pow(10.0, exponent(random));
    data.right.push_back(value);
    data.left.push_back(value + noise * normal(random) * std::abs(value));
  }
  if (random() % 20 == 0) data.left[0] = data.right[0] = std::nan("");
  if (random() % 20 == 0) data.left[0] = INFINITY;
  return data;
}

TEST(Within, JudgingAgainEqualsMeasuringAgain) {
  std::mt19937_64 random(20240607);
  int passed = 0;
  int failed = 0;
  for (int round = 0; round < 4000; ++round) {
    const Data data = random_data(random);
    const Measurement stored =
        measure(DType::float64, testing::raw(data.left), testing::raw(data.right), {0.01, 0.01});
    for (const double rtol : kRtolGrid) {
      const double atol = std::pow(10.0, -static_cast<double>(random() % 10));
      const bool expected = agrees_by_definition(data.left, data.right, {atol, rtol});
      const Measurement again =
          measure(DType::float64, testing::raw(data.left), testing::raw(data.right), {atol, rtol});
      EXPECT_EQ(again.beyond == 0, expected) << "atol " << atol << " rtol " << rtol;
      EXPECT_EQ(stored_within(stored, {atol, rtol}), expected)
          << "atol " << atol << " rtol " << rtol << " round " << round;
      ++(expected ? passed : failed);
    }
  }
  EXPECT_GT(passed, 2000);  // the data are on both sides of the question
  EXPECT_GT(failed, 2000);
}

// Between two grid points a pass is sure: never laxer than measuring.
TEST(Within, BetweenGridPointsItIsStrict) {
  std::mt19937_64 random(7);
  int passed = 0;
  for (int round = 0; round < 4000; ++round) {
    const Data data = random_data(random);
    const Measurement stored =
        measure(DType::float64, testing::raw(data.left), testing::raw(data.right), {0.01, 0.01});
    const Tolerance asked{1e-4, 0.003};
    if (!stored_within(stored, asked)) continue;
    ++passed;
    EXPECT_TRUE(agrees_by_definition(data.left, data.right, asked));
  }
  EXPECT_GT(passed, 100);
}

TEST(Within, AMeasurementWithoutProfilePassesOnlyUnderItsOwnTolerance) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(wire::CreateMeasurement(builder, 10, 9, 0, 0.001));
  const auto* stored = flatbuffers::GetRoot<wire::Measurement>(builder.GetBufferPointer());
  EXPECT_TRUE(within(*stored, 0.01, 0.01, 0.01, 0.01));
  EXPECT_FALSE(within(*stored, 0.1, 0.1, 0.01, 0.01));
}

}  // namespace
}  // namespace assay
