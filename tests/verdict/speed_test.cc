// The statistics of speed, on samples whose truth is known: drawn from a seed, never from a clock.

#include "verdict/speed.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace assay {
namespace {

using ::testing::DoubleNear;

// ---- the intervals against what books and brute force say ----

// Chance that the statistic of all signed ranks is at most `most`, by trying all signs.
double signed_rank_chance(std::size_t n, std::size_t most) {
  std::size_t found = 0;
  for (std::size_t signs = 0; signs < (std::size_t{1} << n); ++signs) {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += (signs >> i & 1U) != 0 ? i + 1 : 0;
    found += sum <= most ? 1 : 0;
  }
  return static_cast<double>(found) / static_cast<double>(std::size_t{1} << n);
}

TEST(Speed, TheIntervalOfPairsIsThatOfTheSignedRankTest) {
  // Ratios 1, 2, 4, … 512: the logarithms are 0 … 9, so their means are known.
  std::vector<double> ratios;
  for (int i = 0; i < 10; ++i) ratios.push_back(std::exp2(i));
  // The table of the signed-rank test has 8 as the critical value for n = 10 at 5%, two sides.
  EXPECT_LE(2 * signed_rank_chance(10, 8), 0.05);
  EXPECT_GT(2 * signed_rank_chance(10, 9), 0.05);
  std::vector<double> means;
  for (int i = 0; i < 10; ++i) {
    for (int j = 0; j <= i; ++j) means.push_back((i + j) / 2.0);
  }
  std::sort(means.begin(), means.end());
  const Ratio ratio = ratio_of_pairs(ratios, 0.05);
  EXPECT_THAT(std::log2(ratio.middle), DoubleNear(4.5, 1e-9));
  // Nine values (0 … 8) are in the tail; the interval begins at the ninth mean, as in the book.
  EXPECT_THAT(std::log2(ratio.low), DoubleNear(means[8], 1e-9));
  EXPECT_THAT(std::log2(ratio.high), DoubleNear(means[means.size() - 9], 1e-9));
}

TEST(Speed, TheIntervalOfSetsIsThatOfTheMannWhitneyTest) {
  // Hand-made: m = n = 5 has 2 as the critical value at 5%, two sides (any table of U).
  const std::vector<double> left{2, 4, 8, 16, 32};
  const std::vector<double> right{1, 1, 1, 1, 1};
  const Ratio ratio = ratio_of_sets(left, right, 0.05);
  // 25 differences: five each of 1 … 5. Three values of U (0, 1, 2) are left out on either side.
  EXPECT_THAT(std::log2(ratio.low), DoubleNear(1, 1e-9));
  EXPECT_THAT(std::log2(ratio.high), DoubleNear(5, 1e-9));
  EXPECT_THAT(std::log2(ratio.middle), DoubleNear(3, 1e-9));
}

TEST(Speed, TooFewPairsForTheDoubtGiveNoInterval) {
  const std::vector<double> ratios(5, 2.0);
  // Five pairs of one kind happen in 2 of 32 cases by themselves.
  const Ratio ratio = ratio_of_pairs(ratios, 0.05);
  EXPECT_EQ(ratio.low, 0);
  EXPECT_TRUE(std::isinf(ratio.high));
  EXPECT_EQ(speed_of(ratio, 0.025), Speed::unsure);
  EXPECT_EQ(speed_of(ratio_of_pairs({}, 0.05), 0.025), Speed::unsure);
}

TEST(Speed, VerdictsAreWhereTheIntervalLies) {
  EXPECT_EQ(speed_of({1.03, 1.05, 1.07}, 0.025), Speed::slow);
  EXPECT_EQ(speed_of({0.93, 0.95, 0.97}, 0.025), Speed::fast);
  EXPECT_EQ(speed_of({0.98, 1.0, 1.02}, 0.025), Speed::same);
  EXPECT_EQ(speed_of({1.01, 1.02, 1.03}, 0.025), Speed::unsure);
  EXPECT_EQ(speed_of({0.96, 0.97, 0.98}, 0.025), Speed::unsure);
}

TEST(Speed, MiddleAndSpread) {
  // Half of 1 … 5 lies between 2 and 4.
  EXPECT_THAT(spread_of(std::vector<double>{5, 4, 3, 2, 1}), DoubleNear(2.0 / 3, 1e-12));
}

// ---- cases with a known truth ----

// What a machine does to timings.
struct Noise {
  double each_sample = 0.03;   // of a sample, as a share
  double interruption = 0.05;  // the chance that a sample takes two to ten times as long
  double each_turn = 0.01;     // of a turn of one lane
  double drift = 0;            // of the machine, from the first turn to the last, in both lanes
  double episode = 0;          // slower by so much, for a third of the turns
};

class Machine {
 public:
  Machine(std::uint64_t seed, Noise noise) : random_(seed), noise_(noise) {}

  // The least of a turn's samples, of a call that would take `truth` on an idle machine.
  double turn(double truth, std::size_t turn, std::size_t half) {
    const double when =
        (static_cast<double>(turn) + 0.5 * static_cast<double>(half)) / kLooks.back();
    double pace = truth * (1 + noise_.drift * when) * (1 + noise_.each_turn * normal_(random_));
    if (when > 0.3 && when < 0.63) pace *= 1 + noise_.episode;
    std::vector<double> samples;
    for (int i = 0; i < 15; ++i) {
      double sample = pace * (1 + std::abs(noise_.each_sample * normal_(random_)));
      if (share_(random_) < noise_.interruption) sample *= 2 + 8 * share_(random_);
      samples.push_back(sample);
    }
    return *std::min_element(samples.begin(), samples.end());
  }

  // A case as TimedCase takes it: lanes by turns, who begins changing, looks as kLooks says.
  Speed compare(double truth_of_ratio, double margin) {
    std::vector<double> ratios;
    for (const std::size_t look : kLooks) {
      while (ratios.size() < look) {
        const std::size_t at = ratios.size();
        const bool left_first = at % 2 == 0;
        double first = turn(left_first ? truth_of_ratio : 1, at, 0);
        double second = turn(left_first ? 1 : truth_of_ratio, at, 1);
        if (!left_first) std::swap(first, second);
        ratios.push_back(first / second);
      }
      const Speed speed = speed_of(ratio_of_pairs(ratios, kDoubtOfALook), margin);
      if (speed != Speed::unsure) return speed;
    }
    return Speed::unsure;
  }

 private:
  std::mt19937_64 random_;
  Noise noise_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> share_;
};

// How many of 1,000 cases come to each verdict.
std::array<int, 4> verdicts(double ratio, const Noise& noise, double margin = 0.025) {
  std::array<int, 4> counts{};
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    ++counts[static_cast<std::size_t>(Machine(seed, noise).compare(ratio, margin))];
  }
  return counts;
}

int flagged(const std::array<int, 4>& counts) {
  return counts[static_cast<std::size_t>(Speed::slow)] +
         counts[static_cast<std::size_t>(Speed::fast)];
}
int slow(const std::array<int, 4>& counts) { return counts[static_cast<std::size_t>(Speed::slow)]; }

TEST(Speed, ABuildAgainstItselfIsFlaggedInOneOfAHundredAtMost) {
  EXPECT_LE(flagged(verdicts(1, {})), 10);
  EXPECT_LE(flagged(verdicts(1, {.drift = 0.5})), 10);
  EXPECT_LE(flagged(verdicts(1, {.each_turn = 0.03, .episode = 0.4})), 10);
  // The doubt that is allowed holds without a margin as well, where nothing else protects.
  EXPECT_LE(flagged(verdicts(1, {}, 0)), 10 + 10);  // three standard deviations of 1,000 draws
  EXPECT_LE(flagged(verdicts(1, {.drift = 0.5}, 0)), 10 + 10);
}

TEST(Speed, FivePercentAreFoundInNineteenOfTwentyAtLeast) {
  EXPECT_GE(slow(verdicts(1.05, {})), 950);
  EXPECT_GE(slow(verdicts(1.05, {.drift = 0.5})), 950);
  EXPECT_GE(slow(verdicts(1.05, {.each_turn = 0.02, .episode = 0.4})), 950);
}

TEST(Speed, FivePercentLessIsFast) {
  const auto counts = verdicts(1 / 1.05, {.drift = 0.3});
  EXPECT_GE(counts[static_cast<std::size_t>(Speed::fast)], 950);
  EXPECT_EQ(slow(counts), 0);
}

TEST(Speed, TimingsThatVaryTooMuchAreUnsure) {
  const auto counts = verdicts(1, {.each_turn = 0.3});
  EXPECT_LE(flagged(counts), 10);
  EXPECT_GE(counts[static_cast<std::size_t>(Speed::unsure)], 900);
}

// Lanes one after the other instead of by turns: a drift of the machine looks like a slow lane. So
// a pair has to be of one turn; this is what the turns are for.
TEST(Speed, WithoutTurnsADriftWouldBeTakenForALane) {
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Machine machine(seed, {.drift = 0.5});
    std::vector<double> left;
    std::vector<double> right;
    for (std::size_t turn = 0; turn < 24; ++turn) right.push_back(machine.turn(1, turn, 0));
    for (std::size_t turn = 24; turn < 48; ++turn) left.push_back(machine.turn(1, turn, 0));
    wrong += speed_of(ratio_of_sets(left, right, kDoubt), 0.025) == Speed::slow ? 1 : 0;
  }
  EXPECT_GE(wrong, 190);
}

// The intervals hold the truth as often as they say.
TEST(Speed, TheIntervalOfTwoSetsContainsTheTruthAsOftenAsPromised) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> noise(0, 0.1);
  int outside = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<double> left;
    std::vector<double> right;
    for (int k = 0; k < 24; ++k) left.push_back(1.1 * noise(random));
    for (int k = 0; k < 48; ++k) right.push_back(noise(random));
    const Ratio ratio = ratio_of_sets(left, right, 0.05);
    outside += ratio.low > 1.1 || ratio.high < 1.1 ? 1 : 0;
  }
  EXPECT_LE(outside, 100 + 30);  // 5% of 2,000, and three standard deviations
  EXPECT_GE(outside, 50);        // an interval that is never wrong is wider than it says
}

}  // namespace
}  // namespace assay
