#include "base/statistics.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Statistics, MedianOfAnOddNumberIsTheMiddle) {
  const std::vector<double> values{3, 1, 2};
  EXPECT_EQ(median_of(values), 2);
  EXPECT_EQ(lower_median(values), 2);
  EXPECT_EQ(upper_median(values), 2);
}

TEST(Statistics, MediansOfAnEvenNumberDiffer) {
  const std::vector<double> values{4, 1, 2, 3};
  EXPECT_EQ(median_of(values), 2.5);
  EXPECT_EQ(lower_median(values), 2);
  EXPECT_EQ(upper_median(values), 3);
}

TEST(Statistics, MedianOfNothingIsZero) {
  EXPECT_EQ(median_of({}), 0);
  EXPECT_EQ(lower_median(std::vector<int>{}), 0);
  EXPECT_EQ(upper_median(std::vector<int>{}), 0);
}

TEST(Statistics, PercentileIsOneOfTheValues) {
  const std::vector<int> values{40, 10, 30, 20};
  EXPECT_EQ(percentile(values, 0), 10);
  EXPECT_EQ(percentile(values, 50), 20);
  EXPECT_EQ(percentile(values, 51), 30);
  EXPECT_EQ(percentile(values, 100), 40);
  EXPECT_EQ(percentile(std::vector<int>{}, 50), 0);
}

TEST(Statistics, RankedCountsFromTheLeast) {
  const std::vector<int> values{30, 10, 20, 20};
  EXPECT_EQ(ranked(values, 0), 10);
  EXPECT_EQ(ranked(values, 2), 20);
  EXPECT_EQ(ranked(values, 3), 30);
}

}  // namespace
}  // namespace assay
