// Right draws pass under every seed and wrong ones fail. The draws come from the standard library.

#include "measure/draw_distribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "draws.h"
#include "fill/numbers.h"
#include "measure/dependence.h"

namespace assay {
namespace {

struct Sample {
  DrawDistribution kind;
  std::function<std::vector<double>(std::size_t, unsigned)> draw;
  std::vector<DrawParameter> right;
  std::vector<DrawParameter> wrong;
};

class DrawDistributions : public ::testing::TestWithParam<Sample> {};

TEST_P(DrawDistributions, HoldForRightDrawsOfEverySizeAndSeed) {
  const Sample& sample = GetParam();
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    for (const std::size_t count : {0U, 1U, 3U, 40U, 5000U}) {
      EXPECT_TRUE(holds(sample.kind, sample.draw(count, seed), sample.right))
          << name(sample.kind) << " seed " << seed << " count " << count;
    }
  }
}

TEST_P(DrawDistributions, DoNotHoldForDrawsOfANearbyDistribution) {
  const Sample& sample = GetParam();
  for (unsigned seed = 0; seed < 5; ++seed) {
    EXPECT_FALSE(holds(sample.kind, sample.draw(200'000, seed), sample.wrong)) << name(sample.kind);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, DrawDistributions,
    ::testing::Values(
        Sample{DrawDistribution::uniform,
               [](auto n, auto s) { return draw(std::uniform_real_distribution(-1.0, 3.0), n, s); },
               {{-1, {}}, {3, {}}},
               {{-1.1, {}}, {3.1, {}}}},
        Sample{DrawDistribution::normal,
               [](auto n, auto s) { return draw(std::normal_distribution(2.0, 0.5), n, s); },
               {{2, {}}, {0.5, {}}},
               {{2.02, {}}, {0.5, {}}}},
        Sample{DrawDistribution::bernoulli,
               [](auto n, auto s) { return draw(std::bernoulli_distribution(0.3), n, s); },
               {{0.3, {}}},
               {{0.32, {}}}},
        Sample{DrawDistribution::integers,
               [](auto n, auto s) { return draw(std::uniform_int_distribution(2, 9), n, s); },
               {{2, {}}, {10, {}}},
               {{2, {}}, {11, {}}}},
        Sample{DrawDistribution::exponential,
               [](auto n, auto s) { return draw(std::exponential_distribution(2.0), n, s); },
               {{2, {}}},
               {{2.1, {}}}},
        Sample{DrawDistribution::poisson,
               [](auto n, auto s) { return draw(std::poisson_distribution(4.0), n, s); },
               {{4, {}}},
               {{4.1, {}}}},
        // The library counts failures before the first success; the distribution here counts
        // trials.
        Sample{DrawDistribution::geometric,
               [](auto n, auto s) {
                 auto d = draw(std::geometric_distribution(0.25), n, s);
                 for (double& x : d) ++x;
                 return d;
               },
               {{0.25, {}}},
               {{0.26, {}}}},
        Sample{DrawDistribution::log_normal,
               [](auto n, auto s) { return draw(std::lognormal_distribution(0.1, 0.7), n, s); },
               {{0.1, {}}, {0.7, {}}},
               {{0.12, {}}, {0.7, {}}}},
        Sample{DrawDistribution::cauchy,
               [](auto n, auto s) { return draw(std::cauchy_distribution(1.0, 2.0), n, s); },
               {{1, {}}, {2, {}}},
               {{1, {}}, {2.3, {}}}},
        // The library's second parameter is a scale; here it is a rate.
        Sample{DrawDistribution::gamma,
               [](auto n, auto s) { return draw(std::gamma_distribution(3.0, 0.5), n, s); },
               {{3, {}}, {2, {}}},
               {{3.1, {}}, {2, {}}}},
        Sample{DrawDistribution::binomial,
               [](auto n, auto s) { return draw(std::binomial_distribution(10, 0.4), n, s); },
               {{10, {}}, {0.4, {}}},
               {{10, {}}, {0.41, {}}}}),
    [](const auto& of) { return std::string(name(of.param.kind)); });

TEST(Support, AnImpossibleValueIsNamed) {
  const std::vector<double> drawn{0, 1, 2, 7};
  const std::vector<DrawParameter> parameters{{0, {}}, {3, {}}};
  const DrawMeasurement measured = measure_draws(DrawDistribution::integers, drawn, parameters, 0);
  EXPECT_EQ(measured.outside, 1U);
  EXPECT_EQ(measured.first_outside, 3U);
  EXPECT_EQ(measured.first_value, 7);
  EXPECT_FALSE(distribution_holds(measured));
}

TEST(Support, ADistributionWithoutSpreadIsOneValue) {
  EXPECT_TRUE(holds(DrawDistribution::normal, {2, 2, 2}, {{2, {}}, {0, {}}}));
  EXPECT_FALSE(holds(DrawDistribution::normal, {2, 2.5, 2}, {{2, {}}, {0, {}}}));
}

TEST(Parameters, MayDifferFromElementToElement) {
  std::mt19937_64 random(5);
  std::vector<double> p(50'000);
  std::vector<double> drawn(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) {
    p[i] = static_cast<double>(i % 10) / 10;
    drawn[i] = std::bernoulli_distribution(p[i])(random) ? 1 : 0;
  }
  EXPECT_TRUE(holds(DrawDistribution::bernoulli, drawn, {{0, p}}));
  std::reverse(p.begin(), p.end());  // the same overall share at wrong positions
  EXPECT_FALSE(holds(DrawDistribution::bernoulli, drawn, {{0, p}}));
}

// Only the shape is wrong: mean and deviation are right.
TEST(Spread, IsMoreThanMeanAndDeviation) {
  const auto drawn =
      draw(std::uniform_real_distribution(-std::sqrt(3.0), std::sqrt(3.0)), 50'000, 1);
  EXPECT_FALSE(holds(DrawDistribution::normal, drawn, {{0, {}}, {1, {}}}));
}

// A twentieth of the range is missing; mean, deviation and distance are not off by enough to show
// it.
TEST(Spread, BothEndsOfADistributionAreDrawn) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto low = draw(std::uniform_real_distribution(0.0, 1.9), 2'000, seed);
    const auto high = draw(std::uniform_real_distribution(0.1, 2.0), 2'000, seed);
    EXPECT_FALSE(holds(DrawDistribution::uniform, low, {{0, {}}, {2, {}}})) << seed;
    EXPECT_FALSE(holds(DrawDistribution::uniform, high, {{0, {}}, {2, {}}})) << seed;
    EXPECT_TRUE(holds(DrawDistribution::uniform, low, {{0, {}}, {1.9, {}}})) << seed;
  }
}

// If the statistics of right draws were much smaller than the bounds assume, the bounds would
// detect nothing.
TEST_P(DrawDistributions, StatisticsHaveTheScaleThatTheBoundsAssume) {
  const Sample& sample = GetParam();
  double mean = 0;
  double variance = 0;
  double ks = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const auto m = measure_draws(sample.kind, sample.draw(1000, seed), sample.right, kDouble);
    mean += m.mean_z * m.mean_z / kSeeds;
    variance += m.variance_z * m.variance_z / kSeeds;
    ks += m.ks / kSeeds;
  }
  // Means of 200 squares of standard normal variables: 1 ± 0.1. Kolmogorov's distribution has the
  // mean 0.869.
  EXPECT_NEAR(mean, 1, 0.5);
  EXPECT_NEAR(variance, 1, 0.5);
  EXPECT_NEAR(ks, 0.869, 0.1);
}

double rounded_to(double x, DType dtype) {
  if (dtype == DType::float16) return real_of(rounded<Float16>(x));
  return real_of(rounded<BFloat16>(x));
}

TEST_P(DrawDistributions, HoldForDrawsThatWereRoundedToACoarseDtype) {
  const Sample& sample = GetParam();
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    for (unsigned seed = 0; seed < 3; ++seed) {
      std::vector<double> drawn = sample.draw(50'000, seed);
      for (double& x : drawn) x = rounded_to(x, dtype);
      EXPECT_TRUE(holds(sample.kind, drawn, sample.right, resolution_of(dtype)))
          << assay::name(dtype);
    }
  }
}

TEST(Rounding, OfAComplexNumberIsThatOfItsParts) {
  EXPECT_EQ(resolution_of(DType::complex64), resolution_of(DType::float32));
  EXPECT_EQ(resolution_of(DType::complex128), resolution_of(DType::float64));
  EXPECT_EQ(resolution_of(DType::float32), 0x1p-23);
  EXPECT_EQ(resolution_of(DType::int64), 0);
}

TEST(Rounding, ExplainsWhatItDoesAndNoMore) {
  const double bfloat = resolution_of(DType::bfloat16);
  const double half = resolution_of(DType::float16);
  // bfloat16 in [0, 1) as frameworks draw it: eight random bits, truncated.
  std::mt19937_64 random(1);
  std::vector<double> cut(1'000'000);
  for (double& x : cut) x = static_cast<double>(random() % 256) / 256;
  EXPECT_TRUE(holds(DrawDistribution::uniform, cut, {{0, {}}, {1, {}}}, bfloat));
  // Rounding may reach the open end of a range, but nothing beyond.
  EXPECT_TRUE(holds(DrawDistribution::uniform, {1.0}, {{0, {}}, {1, {}}}, bfloat));
  EXPECT_FALSE(holds(DrawDistribution::uniform, {1.02}, {{0, {}}, {1, {}}}, bfloat));
  // A deviation far below the dtype's spacing at the mean.
  std::vector<double> narrow = draw(std::normal_distribution(100.0, 0.1), 100'000, 1);
  for (double& x : narrow) x = rounded_to(x, DType::bfloat16);
  EXPECT_TRUE(holds(DrawDistribution::normal, narrow, {{100, {}}, {0.1, {}}}, bfloat));
  EXPECT_FALSE(
      holds(DrawDistribution::normal, narrow, {{100, {}}, {0.1, {}}}));  // of a finer dtype
  // Counts that float16 does not have exactly.
  std::vector<double> counts = draw(std::poisson_distribution(3000.0), 100'000, 1);
  for (double& x : counts) x = rounded_to(x, DType::float16);
  EXPECT_TRUE(holds(DrawDistribution::poisson, counts, {{3000, {}}}, half));
  // Infinity is only accepted from a tail beyond float16.
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(holds(DrawDistribution::cauchy, {infinity, -infinity, 1}, {{0, {}}, {1, {}}}, half));
  EXPECT_FALSE(holds(DrawDistribution::cauchy, {infinity, 1}, {{0, {}}, {1, {}}}));
  EXPECT_FALSE(holds(DrawDistribution::normal, {infinity, 1}, {{0, {}}, {1, {}}}, half));
}

TEST(Support, OfEveryDistributionIsKept) {
  const auto first_outside = [](DrawDistribution kind, double a, double b,
                                const std::vector<double>& drawn) {
    const DrawMeasurement m =
        measure_draws(kind, drawn, std::vector<DrawParameter>{{a, {}}, {b, {}}}, kDouble);
    EXPECT_FALSE(distribution_holds(m));
    return m.first_outside;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(first_outside(DrawDistribution::normal, 0, 1, {0.5, nan}), 1U);
  EXPECT_EQ(first_outside(DrawDistribution::bernoulli, 0.5, 0, {0, 1, 0.5}), 2U);
  EXPECT_EQ(first_outside(DrawDistribution::bernoulli, 0, 0, {0, 1}), 1U);
  EXPECT_EQ(first_outside(DrawDistribution::exponential, 1, 0, {1, -1}), 1U);
  EXPECT_EQ(first_outside(DrawDistribution::poisson, 1, 0, {0, 1, 2.5}), 2U);
  EXPECT_EQ(first_outside(DrawDistribution::geometric, 0.5, 0, {1, 0}), 1U);
  EXPECT_EQ(first_outside(DrawDistribution::binomial, 3, 0.5, {3, 4}), 1U);
}

TEST(Parameters, OutsideTheDomainAreNotJudged) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double rate : {-1.0, 0.0, nan}) {
    const DrawMeasurement m =
        measure_draws(DrawDistribution::exponential, std::vector<double>{1, -5},
                      std::vector<DrawParameter>{{rate, {}}}, kDouble);
    EXPECT_EQ(m.judged, 0U);
    EXPECT_TRUE(distribution_holds(m));
  }
}

TEST(Spread, OfManyDrawsASampleIsJudgedAndAllAreLookedAt) {
  std::vector<double> drawn = draw(std::uniform_real_distribution(0.0, 1.0), 3 * kDrawSamples, 1);
  EXPECT_TRUE(holds(DrawDistribution::uniform, drawn, {{0, {}}, {1, {}}}));
  drawn[123'457] = 2;
  const DrawMeasurement m = measure_draws(DrawDistribution::uniform, drawn,
                                          std::vector<DrawParameter>{{0, {}}, {1, {}}}, kDouble);
  EXPECT_GE(m.judged, kDrawSamples);
  EXPECT_LT(m.judged, kDrawSamples + 5000);
  EXPECT_EQ(m.first_outside, 123'457U);
}

TEST_P(DrawDistributions, DoNotHoldForNumbersThatComeTwice) {
  const Sample& sample = GetParam();
  if (!has_distribution(sample.kind)) GTEST_SKIP() << "permutations are judged otherwise";
  for (const std::size_t block : {1U, 4U, 100U, 500U, 2000U, 32'768U}) {
    const auto drawn = in_blocks(sample.draw(std::max<std::size_t>(block, 4000), 1), block);
    const auto m = measure_draws(sample.kind, drawn, sample.right, kDouble);
    EXPECT_FALSE(distribution_holds(m)) << name(sample.kind) << " block " << block;
    EXPECT_EQ(m.lag, block);
    EXPECT_THAT(describe(sample.kind, m), testing::HasSubstr("are not independent"));
  }
}

// What a generator with that many different values draws.
std::vector<double> coarse(std::vector<double> drawn, double values) {
  for (double& x : drawn) x = std::floor(x * values) / values;
  return drawn;
}

TEST(Equal, PairsAreCounted) {
  for (const std::size_t count : {300U, 5000U}) {
    for (unsigned seed = 0; seed < kSeeds; ++seed) {
      const auto drawn = draw(std::uniform_real_distribution(0.0, 1.0), count, seed);
      EXPECT_TRUE(
          holds(DrawDistribution::uniform, coarse(drawn, 0x1p23), {{0, {}}, {1, {}}}, 0x1p-23));
      EXPECT_TRUE(
          holds(DrawDistribution::uniform, coarse(drawn, 0x1p24), {{0, {}}, {1, {}}}, 0x1p-23));
      EXPECT_FALSE(
          holds(DrawDistribution::uniform, coarse(drawn, 256), {{0, {}}, {1, {}}}, 0x1p-23));
      EXPECT_FALSE(
          holds(DrawDistribution::uniform, coarse(drawn, 2048), {{0, {}}, {1, {}}}, 0x1p-23));
      EXPECT_TRUE(
          holds(DrawDistribution::uniform, coarse(drawn, 2048), {{0, {}}, {1, {}}}, 0x1p-10));
    }
  }
}

TEST(Equal, RowsAreFound) {
  constexpr std::size_t kRow = 5000;
  const std::vector<std::size_t> rows{kRow};
  for (unsigned seed = 0; seed < 5; ++seed) {
    auto drawn = draw(std::bernoulli_distribution(0.5), 4 * kRow, seed);
    const std::vector<DrawParameter> half{{0.5, {}}};
    EXPECT_TRUE(
        distribution_holds(measure_draws(DrawDistribution::bernoulli, drawn, half, kDouble, rows)));
    std::copy_n(drawn.begin(), kRow, drawn.begin() + kRow);
    EXPECT_FALSE(
        distribution_holds(measure_draws(DrawDistribution::bernoulli, drawn, half, kDouble, rows)));
  }
}

TEST(Equal, ShortRowsAreFound) {
  const std::vector<DrawParameter> unit{{0, {}}, {1, {}}};
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    auto drawn = coarse(draw(std::uniform_real_distribution(0.0, 1.0), 20'000, seed), 0x1p23);
    const std::vector<std::size_t> rows{8};
    EXPECT_TRUE(
        distribution_holds(measure_draws(DrawDistribution::uniform, drawn, unit, 0x1p-23, rows)));
    std::copy_n(drawn.begin(), 8, drawn.begin() + 8);
    EXPECT_FALSE(
        distribution_holds(measure_draws(DrawDistribution::uniform, drawn, unit, 0x1p-23, rows)));
  }
}

TEST(Groups, OfSimilarParametersHaveTheirOwnMean) {
  constexpr std::size_t kCount = 250'000;
  std::vector<double> rates(kCount);
  for (std::size_t i = 0; i < kCount; ++i) rates[i] = 0.5 + 4.5 * static_cast<double>(i) / kCount;
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<double> right(kCount);
    std::vector<double> wrong(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      right[i] = std::poisson_distribution<>(rates[i])(random);
      wrong[i] = std::poisson_distribution<>(rates[i] * (rates[i] < 1 ? 1.1 : 1))(random);
    }
    EXPECT_TRUE(holds(DrawDistribution::poisson, right, {{0, rates}})) << seed;
    EXPECT_FALSE(holds(DrawDistribution::poisson, wrong, {{0, rates}})) << seed;
  }
}

TEST(Describe, NamesWhatFailed) {
  const auto text = [](DrawDistribution kind, const std::vector<double>& drawn,
                       const std::vector<DrawParameter>& parameters) {
    return describe(kind, measure_draws(kind, drawn, parameters, kDouble));
  };
  EXPECT_THAT(
      text(DrawDistribution::uniform, {0.5, 7}, {{0, {}}, {1, {}}}),
      testing::HasSubstr(
          "1 of 2 elements cannot come from the distribution uniform; first: element 1, 7"));
  const std::vector<double> ones(1000, 1.0);
  EXPECT_THAT(text(DrawDistribution::kept, ones, {{0, ones}, {0.5, {}}, {0, {}}}),
              testing::HasSubstr("1000 of 1000 draws were kept"));
  EXPECT_THAT(text(DrawDistribution::uniform, std::vector<double>(1000, 0.9), {{0, {}}, {1, {}}}),
              testing::HasSubstr("mean off by"));
}

}  // namespace
}  // namespace assay
