// Bundles are what many machines share a run by: every case in one, none with more work than asked.

#include "store/bundles.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

namespace assay {
namespace {

using ::testing::ElementsAre;

// By what comes before a case.
TEST(Bundles, OfSortedCasesAreCutByTheirSum) {
  BundleCutter cutter(5, 10);
  std::vector<std::int64_t> numbers;
  for (const std::int64_t work : {25, 7, 6, 5, 4, 3, 2})
    numbers.push_back(cutter.place_sorted(work));
  EXPECT_THAT(numbers, ElementsAre(5, 7, 8, 8, 9, 9, 10));
  ASSERT_EQ(cutter.bundles().size(), 5U);
  EXPECT_EQ(cutter.bundles()[2].dearest_us, 6);
  EXPECT_EQ(cutter.bundles()[2].cases, 2);
}

TEST(Bundles, OfCasesInAnyOrderHoldCasesOfLikeCost) {
  constexpr std::int64_t kBundle = 1'000;
  BundleCutter cutter(1, kBundle);
  std::mt19937 random(7);
  std::map<std::int64_t, std::vector<std::int64_t>> in;
  for (int i = 0; i < 100'000; ++i) {
    const auto work =
        static_cast<std::int64_t>(std::exp2(std::uniform_real_distribution(0.0, 12.0)(random)));
    in[cutter.place(work)].push_back(work);
  }
  ASSERT_EQ(in.size(), cutter.bundles().size());
  int small = 0;
  for (const CutBundle& bundle : cutter.bundles()) {
    const auto& works = in.at(bundle.number);
    const auto [least, most] = std::minmax_element(works.begin(), works.end());
    EXPECT_EQ(bundle.dearest_us, *most);
    EXPECT_EQ(bundle.cases, static_cast<std::int64_t>(works.size()));
    EXPECT_LE(static_cast<double>(*most), static_cast<double>(*least) * 1.19 + 1);
    const std::int64_t all = std::accumulate(works.begin(), works.end(), std::int64_t{0});
    EXPECT_LT(all - works.back(), kBundle);
    small += all < kBundle ? 1 : 0;
  }
  EXPECT_LE(small, 48);  // one of each cost may be left unfilled
}

TEST(Bundles, AnyCostHasAPlace) {
  BundleCutter cutter(1, 2'000'000);
  EXPECT_EQ(cutter.place(std::numeric_limits<std::int64_t>::max()), 1);
  EXPECT_EQ(cutter.place(0), 2);
  EXPECT_EQ(cutter.place(1), 2);
}

}  // namespace
}  // namespace assay
