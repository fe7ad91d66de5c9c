// Bundles, by which many machines share a run: each case is in one, and none has too much work.

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

// The work before a case decides its bundle.
TEST(Bundles, OfSortedCasesAreCutByTheirSum) {
  BundleCutter cutter(5, 10);
  std::vector<std::int64_t> numbers;
  for (const std::int64_t work : {25, 7, 6, 5, 4, 3, 2})
    numbers.push_back(cutter.place_sorted(work));
  EXPECT_THAT(numbers, ElementsAre(5, 6, 7, 7, 8, 8, 9));
  ASSERT_EQ(cutter.bundles().size(), 5U);
  EXPECT_EQ(cutter.bundles()[2].rank, 6);
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
  std::int64_t kept_us = 0;
  for (const CutBundle& bundle : cutter.bundles()) {
    if (bundle.rank < 0) {  // the first of them is the last of all
      EXPECT_LE(bundle.work_us, kBundle + kBundle / 16);
      kept_us += bundle.work_us;
      continue;
    }
    const auto& works = in.at(bundle.number);
    const auto [least, most] = std::minmax_element(works.begin(), works.end());
    EXPECT_EQ(bundle.rank, *most);
    EXPECT_EQ(bundle.cases, static_cast<std::int64_t>(works.size()));
    EXPECT_LE(static_cast<double>(*most), static_cast<double>(*least) * 1.19 + 1);
    const std::int64_t all = std::accumulate(works.begin(), works.end(), std::int64_t{0});
    EXPECT_LT(all - works.back(), kBundle);
    small += all < kBundle ? 1 : 0;
  }
  EXPECT_LE(small, 48);  // one of each cost may be left unfilled
  EXPECT_GT(kept_us, 0);
  EXPECT_LT(kept_us, (BundleCutter::kShares + 1) * kBundle);
}

// 20 s of work in cases of a millisecond, at first in bundles of 100 ms.
TEST(Bundles, BecomeSmallerTowardsTheEnd) {
  constexpr std::int64_t kCases = 20'000;
  BundleCutter cutter(0, 100'000, kCases * 1'000);
  for (std::int64_t i = 0; i < kCases; ++i) cutter.place_sorted(1'000);
  const std::vector<CutBundle> bundles = cutter.in_order();
  EXPECT_EQ(bundles.front().work_us, 100'000);
  EXPECT_EQ(bundles.front().left_us, kCases * 1'000);
  EXPECT_LE(bundles.back().work_us, BundleCutter::kLeastUs);
  EXPECT_EQ(bundles.back().left_us, bundles.back().work_us);
  for (const CutBundle& each : bundles) {
    const std::int64_t share = each.left_us / BundleCutter::kShares;
    EXPECT_LE(each.work_us, std::max(share + 1'000, BundleCutter::kLeastUs));
  }
}

// The last bundles are the smallest and have cheap cases.
TEST(Bundles, SomeCheapCasesAreKeptForTheEnd) {
  BundleCutter cutter(0, 2'000'000);
  std::mt19937 random(7);
  for (int i = 0; i < 300'000; ++i) {
    cutter.place(i % 10 == 0 ? 500'000 : 1'000 + static_cast<std::int64_t>(random() % 99'000));
  }
  const std::vector<CutBundle> bundles = cutter.in_order();
  EXPECT_LE(bundles.back().work_us, 110'000);
  EXPECT_EQ(bundles.back().left_us, bundles.back().work_us);
  for (std::size_t i = 1; i < bundles.size(); ++i) {
    EXPECT_EQ(bundles[i - 1].left_us, bundles[i].left_us + bundles[i - 1].work_us);
    if (bundles[i].left_us < 200'000'000) {
      EXPECT_LT(bundles[i].rank, 0);
      EXPECT_LE(bundles[i].work_us,
                std::max<std::int64_t>(bundles[i].left_us / 128, 10'000) + 100'000);
    }
  }
}

TEST(Bundles, AnyCostHasAPlace) {
  BundleCutter cutter(1, 2'000'000);
  EXPECT_EQ(cutter.place(std::numeric_limits<std::int64_t>::max()), 1);
  EXPECT_EQ(cutter.place(0), 2);
  EXPECT_EQ(cutter.place(1), 2);
}

}  // namespace
}  // namespace assay
