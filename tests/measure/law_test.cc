// Right draws hold under every seed, wrong ones do not; the draws come from the standard library.

#include "measure/law.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace assay {
namespace {

constexpr double kDouble = 0x1p-52;
constexpr int kSeeds = 200;

template <typename Distribution>
std::vector<double> draw(Distribution distribution, std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<double> drawn(count);
  for (double& x : drawn) x = static_cast<double>(distribution(random));
  return drawn;
}

bool holds(LawKind kind, const std::vector<double>& drawn, std::vector<LawParameter> parameters,
           double resolution = kDouble) {
  return law_holds(measure_law(kind, drawn, parameters, resolution));
}

struct Sample {
  LawKind kind;
  std::function<std::vector<double>(std::size_t, unsigned)> draw;
  std::vector<LawParameter> right;
  std::vector<LawParameter> wrong;
};

class Laws : public ::testing::TestWithParam<Sample> {};

TEST_P(Laws, HoldForRightDrawsOfEverySizeAndSeed) {
  const Sample& sample = GetParam();
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    for (const std::size_t count : {0U, 1U, 3U, 40U, 5000U}) {
      EXPECT_TRUE(holds(sample.kind, sample.draw(count, seed), sample.right))
          << name(sample.kind) << " seed " << seed << " count " << count;
    }
  }
}

TEST_P(Laws, DoNotHoldForDrawsOfANearbyLaw) {
  const Sample& sample = GetParam();
  for (unsigned seed = 0; seed < 20; ++seed) {
    EXPECT_FALSE(holds(sample.kind, sample.draw(200'000, seed), sample.wrong)) << name(sample.kind);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Laws,
    ::testing::Values(
        Sample{LawKind::uniform, [](auto n, auto s) { return draw(std::uniform_real_distribution(-1.0, 3.0), n, s); }, {{-1, {}}, {3, {}}}, {{-1.1, {}}, {3.1, {}}}},
        Sample{LawKind::normal, [](auto n, auto s) { return draw(std::normal_distribution(2.0, 0.5), n, s); }, {{2, {}}, {0.5, {}}}, {{2.02, {}}, {0.5, {}}}},
        Sample{LawKind::bernoulli, [](auto n, auto s) { return draw(std::bernoulli_distribution(0.3), n, s); }, {{0.3, {}}}, {{0.32, {}}}},
        Sample{LawKind::integers, [](auto n, auto s) { return draw(std::uniform_int_distribution(2, 9), n, s); }, {{2, {}}, {10, {}}}, {{2, {}}, {11, {}}}},
        Sample{LawKind::exponential, [](auto n, auto s) { return draw(std::exponential_distribution(2.0), n, s); }, {{2, {}}}, {{2.1, {}}}},
        Sample{LawKind::poisson, [](auto n, auto s) { return draw(std::poisson_distribution(4.0), n, s); }, {{4, {}}}, {{4.1, {}}}},
        // The library counts failures before the first success; the law counts trials.
        Sample{LawKind::geometric, [](auto n, auto s) { auto d = draw(std::geometric_distribution(0.25), n, s); for (double& x : d) ++x; return d; }, {{0.25, {}}}, {{0.26, {}}}},
        Sample{LawKind::log_normal, [](auto n, auto s) { return draw(std::lognormal_distribution(0.1, 0.7), n, s); }, {{0.1, {}}, {0.7, {}}}, {{0.12, {}}, {0.7, {}}}},
        Sample{LawKind::cauchy, [](auto n, auto s) { return draw(std::cauchy_distribution(1.0, 2.0), n, s); }, {{1, {}}, {2, {}}}, {{1, {}}, {2.1, {}}}},
        // The library's second parameter is a scale, the law's a rate.
        Sample{LawKind::gamma, [](auto n, auto s) { return draw(std::gamma_distribution(3.0, 0.5), n, s); }, {{3, {}}, {2, {}}}, {{3.1, {}}, {2, {}}}},
        Sample{LawKind::binomial, [](auto n, auto s) { return draw(std::binomial_distribution(10, 0.4), n, s); }, {{10, {}}, {0.4, {}}}, {{10, {}}, {0.41, {}}}}),
    [](const auto& of) { return std::string(name(of.param.kind)); });

// What dropout does: scale what is kept, zero the rest.
std::vector<double> dropped(const std::vector<double>& values, double share, unsigned seed) {
  std::mt19937_64 random(seed);
  std::bernoulli_distribution keep(share);
  std::vector<double> result = values;
  for (double& x : result) x = keep(random) ? x : 0;
  return result;
}

TEST(Kept, HoldsForDropoutAndFailsForAWrongScaleOrShare) {
  const std::vector<double> values = draw(std::uniform_real_distribution(-1.0, 1.0), 20'000, 1);
  std::vector<double> doubled = values;
  for (double& x : doubled) x *= 2;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const std::vector<double> drawn = dropped(values, 0.7, seed);
    EXPECT_TRUE(holds(LawKind::kept, drawn, {{0, values}, {0.7, {}}, {0, {}}}));
    EXPECT_FALSE(holds(LawKind::kept, drawn, {{0, values}, {0.75, {}}, {0, {}}}));
    EXPECT_FALSE(holds(LawKind::kept, drawn, {{0, doubled}, {0.7, {}}, {0, {}}}));
  }
}

TEST(Kept, CertainSharesAreExact) {
  const std::vector<double> values(100, 1.0);
  std::vector<double> one_dropped = values;
  one_dropped[7] = 0;
  EXPECT_TRUE(holds(LawKind::kept, values, {{0, values}, {1, {}}, {0, {}}}));
  EXPECT_FALSE(holds(LawKind::kept, one_dropped, {{0, values}, {1, {}}, {0, {}}}));
  EXPECT_TRUE(holds(LawKind::kept, std::vector<double>(100, 0.0), {{0, values}, {0, {}}, {0, {}}}));
}

TEST(Kept, WholeChannelsAreFewIndependentDraws) {
  // 4 channels of 1000 elements, 3 kept: far from 0.5 for 4000 draws, nothing special for 4.
  std::vector<double> drawn(4000, 1.0);
  std::fill(drawn.begin(), drawn.begin() + 1000, 0.0);
  const std::vector<double> values(4000, 1.0);
  EXPECT_FALSE(holds(LawKind::kept, drawn, {{0, values}, {0.5, {}}, {0, {}}}));
  EXPECT_TRUE(holds(LawKind::kept, drawn, {{0, values}, {0.5, {}}, {4, {}}}));
}

TEST(Permutation, EachOnce) {
  std::vector<double> drawn(50);
  std::iota(drawn.rbegin(), drawn.rend(), 0.0);
  EXPECT_TRUE(holds(LawKind::permutation, drawn, {{50, {}}}));
  drawn[3] = drawn[4];
  EXPECT_FALSE(holds(LawKind::permutation, drawn, {{50, {}}}));
}

TEST(Support, WhatALawCannotGiveIsNamed) {
  const std::vector<double> drawn{0, 1, 2, 7};
  const std::vector<LawParameter> parameters{{0, {}}, {3, {}}};
  const LawMeasurement measured = measure_law(LawKind::integers, drawn, parameters, 0);
  EXPECT_EQ(measured.outside, 1U);
  EXPECT_EQ(measured.first_outside, 3U);
  EXPECT_EQ(measured.first_value, 7);
  EXPECT_FALSE(law_holds(measured));
}

TEST(Support, ALawWithoutSpreadIsOneValue) {
  EXPECT_TRUE(holds(LawKind::normal, {2, 2, 2}, {{2, {}}, {0, {}}}));
  EXPECT_FALSE(holds(LawKind::normal, {2, 2.5, 2}, {{2, {}}, {0, {}}}));
}

TEST(Parameters, MayDifferFromElementToElement) {
  std::mt19937_64 random(5);
  std::vector<double> p(50'000);
  std::vector<double> drawn(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) {
    p[i] = static_cast<double>(i % 10) / 10;
    drawn[i] = std::bernoulli_distribution(p[i])(random) ? 1 : 0;
  }
  EXPECT_TRUE(holds(LawKind::bernoulli, drawn, {{0, p}}));
  std::reverse(p.begin(), p.end());  // the same share in all, at the wrong places
  EXPECT_FALSE(holds(LawKind::bernoulli, drawn, {{0, p}}));
}

}  // namespace
}  // namespace assay
