// The judge as a pure function: histories in, verdicts out.

#include "chain/history/judge.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace assay::chain::history {
namespace {

constexpr Rule kLossRule{0.05, 0.005, 0, Worse::either};
constexpr Rule kSpeedRule{0.10, 0.015, 0, Worse::lower};

class History {
 public:
  explicit History(const Rule& rule = kLossRule) : rule_(rule) {}

  // Nights of a new build each, with one run.
  void nights(const std::vector<double>& values) {
    for (const double value : values) night(value);
  }
  void night(double value) {
    ++night_;
    add(Purpose::nightly, value);
  }
  void again(const std::vector<double>& values) {
    for (const double value : values) add(Purpose::rerun, value);
  }
  void baseline(const std::vector<double>& values) {
    for (const double value : values) add(Purpose::baseline, value, judgement().baseline_build);
  }
  void accept() { observations_.back().accept = true; }
  void same_build() { observations_.back().build = observations_[observations_.size() - 2].build; }
  Judgement judgement() const { return judge(observations_, rule_); }
  State state() const { return judgement().state; }
  std::size_t size() const { return observations_.size(); }

 private:
  void add(Purpose purpose, double value, const std::string& build = "") {
    const std::string own = "build " + std::to_string(night_);
    observations_.push_back({purpose, build.empty() ? own : build, value, false});
  }

  Rule rule_;
  int night_ = 0;
  std::vector<Observation> observations_;
};

const std::vector<double> kSteady{100, 100.1, 99.9, 100, 100.2, 99.8, 100, 100.1, 99.9, 100};

// History until tonight's first run, which is `value`.
History steady_until(double value, const Rule& rule = kLossRule) {
  History history(rule);
  history.nights(kSteady);
  history.night(value);
  return history;
}

TEST(GoldenJudge, FewNightsHaveAFixedTolerance) {
  History history;
  EXPECT_EQ(history.state(), State::good) << "nothing is known yet";
  history.nights({100, 104});
  EXPECT_EQ(history.state(), State::good);
  EXPECT_TRUE(history.judgement().learning);
  EXPECT_EQ(history.judgement().learnt, 2U);
  EXPECT_DOUBLE_EQ(history.judgement().golden, 102);
  EXPECT_DOUBLE_EQ(history.judgement().tolerance, 5.1);
  history.night(108);
  EXPECT_EQ(history.state(), State::suspect);
}

// Sorted deviations of kSteady from 100: four of 0, four of 0.1, two of 0.2; their median is 0.1.
// The deviation is 1.4826 * 0.1 * 10 / 9.2 = 0.16115; with 0.37 * 9 = 3.33 degrees of freedom two
// standard errors become 2 * (1 + 5 / 13.32) = 2.7508; the median of ten nights adds pi / 20 to
// the variance: 2.7508 * 0.16115 * sqrt(1.15708) = 0.47685, which is less than 0.5%.
TEST(GoldenJudge, TheToleranceIsLearntFromTheNights) {
  History history;
  history.nights(kSteady);
  EXPECT_FALSE(history.judgement().learning);
  EXPECT_EQ(history.judgement().learnt, 10U);
  EXPECT_DOUBLE_EQ(history.judgement().golden, 100);
  EXPECT_DOUBLE_EQ(history.judgement().tolerance, 0.5) << "the least change";
  History fine({0.05, 0, 0, Worse::either});
  fine.nights(kSteady);
  EXPECT_NEAR(fine.judgement().tolerance, 0.47685, 1e-4);
}

TEST(GoldenJudge, AnOutlierThatIsNotReproducedIsGood) {
  History history = steady_until(130);
  EXPECT_EQ(history.state(), State::suspect);
  EXPECT_EQ(history.judgement().wanted, 2U);
  EXPECT_EQ(history.judgement().next, Purpose::rerun);
  history.again({100, 100.1});
  EXPECT_EQ(history.state(), State::good);
}

TEST(GoldenJudge, AnOutlierWithoutRerunsIsForgottenByLaterNights) {
  History history = steady_until(130);
  history.night(100);
  history.night(100.1);
  EXPECT_EQ(history.state(), State::good);
}

TEST(GoldenJudge, AChangeIsBlamedOnTheBuildThatHasIt) {
  History history = steady_until(101);
  const std::size_t first = history.size() - 1;
  history.again({101.1, 100.9});
  EXPECT_EQ(history.state(), State::shifted);
  EXPECT_EQ(history.judgement().since, first);
  EXPECT_EQ(history.judgement().baseline_build, "build 10");
  EXPECT_EQ(history.judgement().wanted, 2U);
  EXPECT_EQ(history.judgement().next, Purpose::baseline);
  history.baseline({100, 100.1});
  EXPECT_EQ(history.state(), State::shifted) << "the new build must have it still";
  EXPECT_EQ(history.judgement().wanted, 2U);
  EXPECT_EQ(history.judgement().next, Purpose::rerun);
  history.again({101, 101.1});
  EXPECT_EQ(history.state(), State::regression);
  EXPECT_EQ(history.judgement().wanted, 0U);
}

TEST(GoldenJudge, AChangeThatTheBaselineBuildHasIsOfTheEnvironment) {
  History history = steady_until(101);
  history.again({101.1, 100.9});
  history.baseline({101, 101.1});
  history.again({101, 100.9});
  EXPECT_EQ(history.state(), State::environment);
  history.night(101.1);
  EXPECT_EQ(history.state(), State::good);
  EXPECT_NEAR(history.judgement().golden, 101, 0.2);
  EXPECT_GT(history.judgement().learnt, 10U) << "the tolerance is kept";
  history.night(100);
  EXPECT_EQ(history.state(), State::suspect) << "the old value is a change now";
}

TEST(GoldenJudge, ABuildThatDidNotChangeIsNotBlamed) {
  History history = steady_until(101);
  history.same_build();
  history.night(101);
  history.same_build();
  history.night(101);
  history.same_build();
  EXPECT_EQ(history.state(), State::environment);
}

TEST(GoldenJudge, AMachineThatIsDisturbedIsNotJudged) {
  History history = steady_until(103);
  history.again({104, 102});
  history.baseline({100, 100.1});
  history.again({101, 106});
  EXPECT_EQ(history.state(), State::shifted);
  EXPECT_EQ(history.judgement().wanted, 0U) << "the next night decides";
  history.night(100);
  EXPECT_EQ(history.state(), State::shifted);
  history.night(100);
  EXPECT_EQ(history.state(), State::good);
}

TEST(GoldenJudge, ASmallChangeIsFoundByTheLastNightsTogether) {
  History history({0.05, 0, 0, Worse::either});
  history.nights(kSteady);
  history.night(100.45);  // within the tolerance of one night, 0.477
  EXPECT_EQ(history.state(), State::good);
  history.night(100.45);
  EXPECT_EQ(history.state(), State::suspect);
  EXPECT_EQ(history.judgement().since, history.size() - 2);
}

TEST(GoldenJudge, ABetterValueIsTheNewGolden) {
  History history = steady_until(110, kSpeedRule);
  history.again({110, 111});
  history.baseline({100, 100});
  history.again({110, 110});
  EXPECT_EQ(history.state(), State::improvement);
  history.night(110);
  EXPECT_EQ(history.state(), State::good);
  history.night(100);
  EXPECT_EQ(history.state(), State::suspect);
}

History regressed() {
  History history = steady_until(95, kSpeedRule);
  history.again({95, 95.1});
  history.baseline({100, 100.1});
  history.again({95, 94.9});
  return history;
}

TEST(GoldenJudge, ARegressionLastsUntilItIsFixed) {
  History history = regressed();
  EXPECT_EQ(history.state(), State::regression);
  history.night(95);
  EXPECT_EQ(history.state(), State::regression);
  EXPECT_EQ(history.judgement().wanted, 0U) << "it is known";
  history.nights({100, 100});
  EXPECT_EQ(history.state(), State::good);
  EXPECT_NEAR(history.judgement().golden, 100, 0.1);
}

TEST(GoldenJudge, AnAcceptedValueIsTheNewGolden) {
  History history = regressed();
  history.night(95);
  history.accept();
  EXPECT_EQ(history.state(), State::good);
  EXPECT_NEAR(history.judgement().golden, 95, 0.2);
  history.night(95);
  EXPECT_EQ(history.state(), State::good);
}

// A training that gives the same bits every night has no spread; a change in its fourth digit is no
// change of the model.
TEST(GoldenJudge, RoundingOfANewBuildIsNoChange) {
  History history;
  history.nights(std::vector<double>(12, 10.51634));
  history.night(10.51702);
  EXPECT_EQ(history.state(), State::good);
  history.night(10.62);
  EXPECT_EQ(history.state(), State::suspect);
}

TEST(GoldenJudge, RunsOfTheOwnBuildAreNoBaseline) {
  const std::vector<Observation> observations{{Purpose::nightly, "a", 1, false},
                                              {Purpose::baseline, "a", 9, false}};
  EXPECT_EQ(judge(observations, kLossRule).state, State::good);
  EXPECT_EQ(judge({}, kLossRule).state, State::good);
}

}  // namespace
}  // namespace assay::chain::history
