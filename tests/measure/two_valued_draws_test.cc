// Dropout, choices between two values, categories and permutations: right draws pass under every
// seed and wrong ones fail.

#include "measure/two_valued_draws.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "draws.h"
#include "fill/numbers.h"
#include "measure/dependence.h"

namespace assay {
namespace {

// Dropout: scales the kept values and zeroes the rest.
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
    EXPECT_TRUE(holds(DrawDistribution::kept, drawn, {{0, values}, {0.7, {}}, {0, {}}}));
    EXPECT_FALSE(holds(DrawDistribution::kept, drawn, {{0, values}, {0.75, {}}, {0, {}}}));
    EXPECT_FALSE(holds(DrawDistribution::kept, drawn, {{0, doubled}, {0.7, {}}, {0, {}}}));
  }
}

// Compares with sums of products computed one by one, by the definition in measure/dependence.h.
TEST(Kept, HangsTogetherAsTheProductsOfItsDrawsSay) {
  for (const std::size_t count : {std::size_t{40}, std::size_t{4096}, std::size_t{5001}}) {
    std::mt19937_64 random(count);
    std::bernoulli_distribution one(0.3);
    Dependence plain(0.7, 0.5);
    ChoiceDependence choice(0.3);
    for (std::size_t i = 0; i < count; ++i) {
      const bool draw = one(random);
      plain.add((draw ? 1 : 0) - 0.3);
      choice.add(draw);
    }
    EXPECT_NEAR(choice.run().correlation, plain.run().correlation, 1e-9);
    EXPECT_EQ(choice.run().lag, plain.run().lag);
    EXPECT_EQ(choice.run().pairs, plain.run().pairs);
  }
}

// The result does not depend on the blocks that the draws arrive in.
TEST(Kept, ComesInBlocks) {
  std::vector<double> values = draw(std::uniform_real_distribution(-1.0, 1.0), 20'000, 1);
  std::vector<double> drawn = dropped(values, 0.7, 3);
  values[5] = drawn[5] = 0;
  values[6] = INFINITY;
  drawn[6] = NAN;
  values[7] = drawn[7] = -1e-300;
  drawn[12'345] = 3;
  drawn[12'346] = NAN;
  const DrawMeasurement whole =
      measure_draws(DrawDistribution::kept, drawn,
                    std::vector<DrawParameter>{{0, values}, {0.7, {}}, {0, {}}}, kDouble);
  EXPECT_EQ(whole.count, 20'000U);
  EXPECT_EQ(whole.draws, 19'996U);
  EXPECT_EQ(whole.outside, 2U);
  EXPECT_EQ(whole.first_outside, 12'345U);
  EXPECT_EQ(whole.first_value, 3);
  Choice choice(0.7, kDouble);
  for (std::size_t from = 0; from < drawn.size(); from += 3000) {
    const std::size_t count = std::min<std::size_t>(3000, drawn.size() - from);
    choice.add(std::span(drawn).subspan(from, count), {0, std::span(values).subspan(from, count)},
               {}, {});
  }
  const DrawMeasurement blocks = choice.finish();
  EXPECT_EQ(blocks.count, whole.count);
  EXPECT_EQ(blocks.draws, whole.draws);
  EXPECT_EQ(blocks.kept, whole.kept);
  EXPECT_EQ(blocks.outside, whole.outside);
  EXPECT_EQ(blocks.first_outside, whole.first_outside);
  EXPECT_EQ(blocks.lag, whole.lag);
  EXPECT_EQ(blocks.correlation, whole.correlation);
}

TEST(Kept, CertainSharesAreExact) {
  const std::vector<double> values(100, 1.0);
  std::vector<double> one_dropped = values;
  one_dropped[7] = 0;
  EXPECT_TRUE(holds(DrawDistribution::kept, values, {{0, values}, {1, {}}, {0, {}}}));
  EXPECT_FALSE(holds(DrawDistribution::kept, one_dropped, {{0, values}, {1, {}}, {0, {}}}));
  EXPECT_TRUE(holds(DrawDistribution::kept, std::vector<double>(100, 0.0),
                    {{0, values}, {0, {}}, {0, {}}}));
}

TEST(Kept, WholeChannelsAreFewIndependentDraws) {
  // 4 channels of 1000 elements, 3 kept: far from 0.5 for 4000 draws, nothing special for 4.
  std::vector<double> drawn(4000, 1.0);
  std::fill(drawn.begin(), drawn.begin() + 1000, 0.0);
  const std::vector<double> values(4000, 1.0);
  std::vector<double> channels(4000);
  for (std::size_t i = 0; i < channels.size(); ++i)
    channels[i] = std::floor(static_cast<double>(i) / 1000);
  EXPECT_FALSE(holds(DrawDistribution::kept, drawn, {{0, values}, {0.5, {}}, {0, {}}}));
  EXPECT_TRUE(holds(DrawDistribution::kept, drawn, {{0, values}, {0.5, {}}, {0, channels}}));
  // Elements of a group must be kept or dropped together.
  drawn[3456] = 0;
  const std::vector<DrawParameter> parameters{{0, values}, {0.5, {}}, {0, channels}};
  const DrawMeasurement torn = measure_draws(DrawDistribution::kept, drawn, parameters, kDouble);
  EXPECT_EQ(torn.outside, 1U);
  EXPECT_EQ(torn.first_outside, 3456U);
}

// One of two values, as in dropout with an addend or in alpha dropout.
TEST(Either, HoldsForChoicesAndFailsForAWrongValueOrShare) {
  const std::vector<double> values = draw(std::uniform_real_distribution(-1.0, 1.0), 20'000, 1);
  const std::vector<double> others = draw(std::uniform_real_distribution(-1.0, 1.0), 20'000, 2);
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    std::bernoulli_distribution keep(0.7);
    std::vector<double> drawn = values;
    for (std::size_t i = 0; i < drawn.size(); ++i) drawn[i] = keep(random) ? values[i] : others[i];
    EXPECT_TRUE(
        holds(DrawDistribution::either, drawn, {{0, values}, {0, others}, {0.7, {}}, {0, {}}}));
    EXPECT_FALSE(
        holds(DrawDistribution::either, drawn, {{0, values}, {0, others}, {0.75, {}}, {0, {}}}));
    EXPECT_FALSE(
        holds(DrawDistribution::either, drawn, {{0, values}, {0.3, {}}, {0.7, {}}, {0, {}}}));
    drawn[77] = values[77] + 0.01;
    const std::vector<DrawParameter> parameters{{0, values}, {0, others}, {0.7, {}}, {0, {}}};
    EXPECT_EQ(measure_draws(DrawDistribution::either, drawn, parameters, kDouble).outside, 1U);
  }
  // If both values are equal nothing is drawn, and any other value is wrong.
  EXPECT_TRUE(
      holds(DrawDistribution::either, values, {{0, values}, {0, values}, {0.5, {}}, {0, {}}}));
  EXPECT_FALSE(
      holds(DrawDistribution::either, others, {{0, values}, {0, values}, {0.5, {}}, {0, {}}}));
}

// Draws from weights by the standard library. Without replacement a drawn category loses its
// weight.
std::vector<double> categories_of(const std::vector<double>& weights, std::size_t row,
                                  bool replacement, std::mt19937_64& random) {
  std::vector<double> left = weights;
  std::vector<double> drawn;
  while (drawn.size() < row) {
    const int category = std::discrete_distribution<int>(left.begin(), left.end())(random);
    drawn.push_back(category);
    if (!replacement) left[static_cast<std::size_t>(category)] = 0;
  }
  return drawn;
}

TEST(Categorical, FollowsTheWeightsOfItsRow) {
  const std::vector<double> weights{1, 2, 0, 3, 4, 3, 0, 1};  // two rows of four categories
  const std::vector<double> even(8, 1.0);
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<double> drawn = categories_of({1, 2, 0, 3}, 1000, true, random);
    const std::vector<double> second = categories_of({4, 3, 0, 1}, 1000, true, random);
    drawn.insert(drawn.end(), second.begin(), second.end());
    EXPECT_TRUE(holds(DrawDistribution::categorical, drawn, {{0, weights}, {4, {}}, {1, {}}}, 0))
        << seed;
    EXPECT_FALSE(holds(DrawDistribution::categorical, drawn, {{0, even}, {4, {}}, {1, {}}}, 0))
        << seed;
    // Swaps the rows, so that each has the other's weights.
    std::rotate(drawn.begin(), drawn.begin() + 1000, drawn.end());
    EXPECT_FALSE(holds(DrawDistribution::categorical, drawn, {{0, weights}, {4, {}}, {1, {}}}, 0))
        << seed;
  }
}

TEST(Categorical, WithoutReplacementJudgesWhatIsLeft) {
  std::vector<double> weights;
  std::mt19937_64 random(1);
  std::vector<double> drawn;
  std::vector<double> even;
  for (int row = 0; row < 2000; ++row) {
    const std::vector<double> of_row{1, 2, 3, 4, 10};
    weights.insert(weights.end(), of_row.begin(), of_row.end());
    const std::vector<double> chosen = categories_of(of_row, 4, false, random);
    drawn.insert(drawn.end(), chosen.begin(), chosen.end());
    const std::vector<double> blind = categories_of({1, 1, 1, 1, 1}, 4, false, random);
    even.insert(even.end(), blind.begin(), blind.end());
  }
  const std::vector<DrawParameter> parameters{{0, weights}, {5, {}}, {0, {}}};
  EXPECT_TRUE(holds(DrawDistribution::categorical, drawn, parameters, 0));
  EXPECT_FALSE(holds(DrawDistribution::categorical, even, parameters, 0));
  EXPECT_EQ(measure_draws(DrawDistribution::categorical, drawn, parameters, 0).judged,
            drawn.size());
  drawn[1] = drawn[0];  // the same twice
  const DrawMeasurement twice = measure_draws(DrawDistribution::categorical, drawn, parameters, 0);
  EXPECT_EQ(twice.outside, 1U);
  EXPECT_EQ(twice.first_outside, 1U);
}

TEST(Categorical, NeverDrawsWhatHasNoWeight) {
  const std::vector<DrawParameter> parameters{{0, {1, 0, 1}}, {3, {}}, {1, {}}};
  EXPECT_TRUE(holds(DrawDistribution::categorical, {0, 2, 2}, parameters, 0));
  for (const double bad : {1.0, 3.0, -1.0, 0.5}) {
    EXPECT_FALSE(holds(DrawDistribution::categorical, {0, bad}, parameters, 0)) << bad;
  }
  EXPECT_TRUE(holds(DrawDistribution::categorical, {}, parameters, 0));
  EXPECT_TRUE(
      holds(DrawDistribution::categorical, {0, 0}, {{1, {}}, {1, {}}, {1, {}}}, 0));  // no choice
}

// An error of one thousandth in the scale is visible in float32 and rounding in bfloat16.
TEST(Kept, TheSlackIsThatOfTheDtype) {
  const std::vector<double> values{2, -2, 0.5};
  const std::vector<double> drawn{2.002, 0, 0.5};
  const std::vector<DrawParameter> parameters{{0, values}, {0.5, {}}, {0, {}}};
  EXPECT_FALSE(holds(DrawDistribution::kept, drawn, parameters, resolution_of(DType::float32)));
  EXPECT_TRUE(holds(DrawDistribution::kept, drawn, parameters, resolution_of(DType::bfloat16)));
}

TEST(Permutation, EachOnce) {
  std::vector<double> drawn(50);
  std::iota(drawn.rbegin(), drawn.rend(), 0.0);
  EXPECT_TRUE(holds(DrawDistribution::permutation, drawn, {{50, {}}}));
  drawn[3] = drawn[4];
  EXPECT_FALSE(holds(DrawDistribution::permutation, drawn, {{50, {}}}));
}

// A kept value near 0 must count. Ignoring it when it is kept, or when it is dropped, would shift
// the share.
TEST(Kept, SmallValuesDoNotShiftTheShare) {
  const std::vector<double> values = draw(std::normal_distribution(0.0, 0.003), 100'000, 1);
  EXPECT_TRUE(
      holds(DrawDistribution::kept, dropped(values, 0.5, 2), {{0, values}, {0.5, {}}, {0, {}}}));
  EXPECT_FALSE(
      holds(DrawDistribution::kept, dropped(values, 0.5, 2), {{0, values}, {0.53, {}}, {0, {}}}));
}

TEST(Permutation, OneThatMovesNothingIsNone) {
  std::vector<double> drawn(500);
  std::iota(drawn.begin(), drawn.end(), 0.0);
  EXPECT_FALSE(holds(DrawDistribution::permutation, drawn, {{500, {}}}));
  EXPECT_TRUE(holds(DrawDistribution::permutation, {0, 1, 2}, {{3, {}}}));  // which is possible
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    std::shuffle(drawn.begin(), drawn.end(), std::mt19937_64(seed));
    EXPECT_TRUE(holds(DrawDistribution::permutation, drawn, {{500, {}}})) << seed;
  }
}

TEST(Kept, DoesNotHoldForAMaskThatRepeatsItself) {
  const std::vector<double> values(2000, 1.0);
  const std::vector<double> mask = dropped(std::vector<double>(1000, 1.0), 0.5, 1);
  EXPECT_FALSE(
      holds(DrawDistribution::kept, in_blocks(mask, 8), {{0, values}, {0.5, {}}, {0, {}}}));
  EXPECT_TRUE(
      holds(DrawDistribution::kept, dropped(values, 0.5, 1), {{0, values}, {0.5, {}}, {0, {}}}));
}

}  // namespace
}  // namespace assay
