// Shards hold the whole corpus once, in parts of about equal cost, the same for every caller.

#include "schedule/shards.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <set>

namespace assay {
namespace {

std::vector<ExpectedCase> corpus(std::size_t cases) {
  std::mt19937_64 random(7);
  std::vector<ExpectedCase> made;
  for (std::uint64_t id = 1; id <= cases; ++id) made.push_back({id, 1 + random() % 1000});
  return made;
}

TEST(Shards, EveryCaseIsInOnePartWhateverTheOrderOfTheCorpus) {
  std::vector<ExpectedCase> all = corpus(1000);
  std::set<std::uint64_t> seen;
  std::mt19937_64 random(8);
  for (std::size_t number = 1; number <= 7; ++number) {
    std::shuffle(all.begin(), all.end(), random);
    for (const std::uint64_t id : cases_of({number, 7}, all)) EXPECT_TRUE(seen.insert(id).second);
  }
  EXPECT_EQ(seen.size(), 1000U);
}

// Greedy from the top: a part exceeds the least one by at most its last case.
TEST(Shards, PartsCostTheSame) {
  const std::vector<ExpectedCase> all = corpus(1000);
  std::vector<std::uint64_t> loads;
  for (std::size_t number = 1; number <= 7; ++number) {
    std::uint64_t load = 0;
    for (const std::uint64_t id : cases_of({number, 7}, all)) load += all[id - 1].work_us;
    loads.push_back(load);
  }
  const auto [least, most] = std::minmax_element(loads.begin(), loads.end());
  EXPECT_LE(*most - *least, 1000U);
  EXPECT_GT(*least, 60'000U);  // of about 500,000 in all
}

TEST(Shards, ThereMayBeMorePartsThanCases) {
  EXPECT_THAT(cases_of({1, 3}, {{5, 1}}), ::testing::ElementsAre(5));
  EXPECT_TRUE(cases_of({3, 3}, {{5, 1}}).empty());
}

TEST(Shards, AreNamedByPartAndCount) {
  const auto shard = parse_shard("2/8");
  ASSERT_TRUE(shard.has_value());
  EXPECT_EQ(text_of(*shard), "2/8");
  for (const char* bad : {"", "2", "/", "0/8", "9/8", "-1/8", "1/0", "1/8x", "x/8", "1 /8", "1/8/2",
                          "1/100001", "99999999999999999999/1"}) {
    EXPECT_FALSE(parse_shard(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace assay
