// Timings of two runs, drawn from a seed: what all cases share is the machine's, what one has is
// its own.

#include "report/speed_change.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}

  // Medians of turns around this many nanoseconds, 1% apart.
  std::vector<double> around(double middle, std::size_t turns = 24) {
    std::vector<double> medians;
    for (std::size_t i = 0; i < turns; ++i)
      medians.push_back(middle * (1 + 0.01 * normal_(random_)));
    return medians;
  }
  TimedPart part(double middle, double reference = 0) {
    TimedPart part{"forward host warm", around(middle), {}};
    if (reference > 0) part.beside_reference = around(middle / reference);
    return part;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

TEST(SpeedChange, TheMachinesPaceIsNobodysFault) {
  Draws draws(1);
  SpeedComparison comparison(false, 0.025);
  for (std::uint64_t id = 0; id < 100; ++id) {
    // A machine that is 1.4 times as slow, and one case that is slower than that.
    const double own = id == 7 ? 1.25 : 1;
    comparison.take(id, "case", {draws.part(1400 * own)}, {draws.part(1000)});
  }
  comparison.finish();
  EXPECT_EQ(comparison.count(Speed::slow), 1U);
  EXPECT_EQ(comparison.count(Speed::fast), 0U);
  EXPECT_EQ(comparison.parts().front().id, 7U);
  EXPECT_NEAR(comparison.parts().front().ratio.middle, 1.25, 0.01);
  EXPECT_THAT(comparison.table(), ::testing::ContainsRegex("pace of all cases .1.(4|39)"));
}

TEST(SpeedChange, OneReferenceInBothRunsIsTheYardstick) {
  Draws draws(2);
  SpeedComparison comparison(true, 0.025);
  // The machine is half as fast, and so is the reference; the second case has become faster.
  comparison.take(1, "a", {draws.part(20'000, 20'000)}, {draws.part(10'000, 10'000)});
  comparison.take(2, "b", {draws.part(18'000, 20'000)}, {draws.part(10'000, 10'000)});
  comparison.finish();
  EXPECT_EQ(comparison.count(Speed::same), 1U);
  EXPECT_EQ(comparison.count(Speed::fast), 1U);
  EXPECT_THAT(comparison.table(), HasSubstr("relative to the reference lane"));
}

// By the clock of a host two runs of one build differ as much, for a case that had bad luck once.
TEST(SpeedChange, WithoutAYardstickLittleIsNoChange) {
  Draws draws(6);
  TimedPart device = draws.part(106'000);
  TimedPart device_before = draws.part(100'000);
  device.what = device_before.what = "forward device warm";
  SpeedComparison comparison(false, 0.025);
  comparison.take(1, "a", {draws.part(1060), device}, {draws.part(1000), device_before});
  comparison.finish();
  ASSERT_EQ(comparison.count(Speed::slow), 1U);
  EXPECT_EQ(comparison.count(Speed::same), 1U);
  EXPECT_THAT(comparison.table(), HasSubstr("only differences above 15% count"));
  const auto slow = std::find_if(comparison.parts().begin(), comparison.parts().end(),
                                 [](const SpeedChange& part) { return part.speed == Speed::slow; });
  EXPECT_EQ(slow->what, "forward device warm");
}

TEST(SpeedChange, FewCasesHaveNoPaceAndSaySo) {
  Draws draws(3);
  SpeedComparison comparison(false, 0.025);
  comparison.take(1, "a", {draws.part(1300)}, {draws.part(1000)});
  comparison.finish();
  EXPECT_EQ(comparison.count(Speed::slow), 1U);
  EXPECT_THAT(comparison.table(), HasSubstr("fewer than 20"));
}

TEST(SpeedChange, PartsThatOneRunLacksAreLeftOut) {
  Draws draws(4);
  SpeedComparison comparison(false, 0.025);
  comparison.take(1, "a", {draws.part(1000)}, {});
  comparison.take(2, "b", {draws.part(1000)}, {{"backward host warm", {1000}, {}}});
  comparison.finish();
  EXPECT_TRUE(comparison.empty());
  EXPECT_THAT(comparison.table(), IsEmpty());
}

TEST(SpeedChange, WhatIsNotKnownHasNoEndInJson) {
  Draws draws(5);
  SpeedComparison comparison(false, 0.025);
  comparison.take(1, "a", {{"forward host warm", {1000, 1000}, {}}},
                  {{"forward host warm", {1000}, {}}});
  comparison.finish();
  const nlohmann::json json = comparison.json();
  ASSERT_EQ(json["parts"].size(), 1U);
  EXPECT_EQ(json["parts"][0]["speed"], "unsure");
  EXPECT_FALSE(json["parts"][0].contains("high"));
}

}  // namespace
}  // namespace assay
