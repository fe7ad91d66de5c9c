// The expected time of a case, from the times of other cases of its kind.

#include "store/learned_costs.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

constexpr const char* kFloats = "paddle.add(Tensor([2], \"float32\"), 1)";

TEST(LearnedCosts, AreTheMeanOfAKind) {
  LearnedCosts costs;
  EXPECT_EQ(costs.expected_us(kFloats, 2), std::nullopt);
  costs.add("paddle.add", "float32", 2, 10);
  costs.add("paddle.add", "float32", 7, 21);
  EXPECT_EQ(costs.expected_us(kFloats, 3), 15);  // of 2 to 7 elements
  EXPECT_EQ(costs.expected_us(kFloats, 8), std::nullopt);
  EXPECT_EQ(costs.expected_us("paddle.add(Tensor([2], \"int64\"), 1)", 3), std::nullopt);
  EXPECT_EQ(costs.expected_us("paddle.abs(Tensor([2], \"float32\"))", 3), std::nullopt);
  costs.add("paddle.eye", "", 0, 4);
  EXPECT_EQ(costs.expected_us("paddle.eye(3)", 0), 4);
}

TEST(LearnedCosts, LeaveOutUnknownAndExpensiveCases) {
  LearnedCosts costs;
  costs.add("paddle.add", "float32", 2, 0);
  costs.add("paddle.add", "float32", 2, kExpensiveUs);
  EXPECT_TRUE(costs.empty());
  EXPECT_EQ(costs.text(), "");
  costs.add("paddle.add", "float32", 2, kExpensiveUs - 1);
  EXPECT_EQ(costs.expected_us(kFloats, 2), kExpensiveUs - 1);
}

TEST(LearnedCosts, TextsAddUp) {
  LearnedCosts one;
  one.add("paddle.add", "float32", 2, 10);
  one.add("paddle.odd\tname", "float32", 1ULL << 63, 5);
  LearnedCosts other;
  other.add("paddle.add", "float32", 2, 20);
  LearnedCosts both;
  ASSERT_TRUE(both.add_text(one.text()));
  EXPECT_EQ(both, one);
  ASSERT_TRUE(both.add_text(other.text()));
  EXPECT_EQ(both.expected_us(kFloats, 2), 15);
  EXPECT_EQ(both.expected_us("paddle.odd name(Tensor([1], \"float32\"))", ~0ULL), 5);
}

TEST(LearnedCosts, DamageIsAnError) {
  for (const char* damaged : {"paddle.add\tfloat32\t1\t1\n", "paddle.add\tfloat32\t1\t1\tx\n",
                              "paddle.add\tfloat32\t24\t1\t1\n", "\n"}) {
    LearnedCosts costs;
    EXPECT_FALSE(costs.add_text(damaged)) << damaged;
  }
}

}  // namespace
}  // namespace assay
