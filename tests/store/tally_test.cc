// The sums of a run.

#include "store/tally.h"

#include <gmock/gmock.h>

#include "made_cases.h"
#include "store/store.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using testing::record_of;

constexpr std::string_view kAdd = "paddle.add(Tensor([2], \"float32\"), 1)";

FinishedCase finished(Outcome outcome, std::uint8_t flags, std::int64_t at_ms) {
  FinishedCase made;
  made.verdict.outcome = outcome;
  made.verdict.flags = flags;
  made.finished_ms = at_ms;
  made.took_us = 300;
  return made;
}

TEST(ATally, CountsCasesWithTheSameKeyTogether) {
  const auto record = record_of({1, 2, 3, 4}, {10, 20, 30, 40}, "wide", "too\tlarge");
  Tally tally;
  FinishedCase timed = finished(Outcome::pass, kWeak, 60'000);
  timed.record = record;
  tally.add(traits_of(kAdd), timed);
  tally.add(traits_of(kAdd), finished(Outcome::pass, kWeak, 119'999));
  tally.add(traits_of(kAdd), finished(Outcome::crash, 0, 120'000));
  EXPECT_EQ(tally.finished(), 3);
  ASSERT_EQ(tally.cases().size(), 2U);
  const auto passed = tally.cases().find({{"paddle.add", "float32", 1}, Outcome::pass, kWeak});
  ASSERT_NE(passed, tally.cases().end());
  EXPECT_EQ(passed->second.cases, 2);
  EXPECT_EQ(passed->second.took_us, 600);
  EXPECT_EQ(passed->second.partly, 1);
  EXPECT_EQ(passed->second.stages.cases, 1);
  EXPECT_THAT(passed->second.stages.ns, ElementsAre(11, 2, 4, 60, 33, 0, 90));
  EXPECT_EQ(passed->second.stages.in_lanes(), 110);
  EXPECT_THAT(tally.lanes(), ElementsAre(Pair("paddle", ElementsAre(1, 2, 3, 4)),
                                         Pair("torch", ElementsAre(10, 20, 30, 40))));
  EXPECT_THAT(tally.not_judged(), ElementsAre(Pair(Pair("wide", "too large"), 1)));
  EXPECT_EQ(tally.minutes().at(1).cases, 2);
  EXPECT_EQ(tally.minutes().at(1).failed, 0);
  EXPECT_EQ(tally.minutes().at(2).failed, 1);
}

TEST(ATally, IsReadBackFromItsText) {
  const auto record = record_of({1, 2, 3, 4}, {10, 20, 30, 40}, "wide", "");
  Tally tally;
  FinishedCase timed = finished(Outcome::mismatch, kFlaky | kLeaked, -1);
  timed.record = record;
  tally.add({"paddle.\xff\n\"", "", 0}, timed);
  tally.take_back(traits_of(kAdd), finished(Outcome::crash, 0, 0));
  Tally again;
  ASSERT_TRUE(again.add_text(tally.text()));
  EXPECT_EQ(again, tally);
  ASSERT_TRUE(again.add_text(tally.text()));  // and is added to what is there
  tally.add(tally);
  EXPECT_EQ(again, tally);
}

TEST(ATally, TakingACaseBackRevertsAddingIt) {
  const auto record = record_of({1, 2, 3, 4}, {10, 20, 30, 40}, "wide", "why");
  Tally tally;
  FinishedCase timed = finished(Outcome::mismatch, kFlaky, 99'000);
  timed.record = record;
  tally.add(traits_of(kAdd), timed);
  tally.take_back(traits_of(kAdd), timed);
  EXPECT_EQ(tally.text(), "taken_back\t1\n");
}

TEST(ATally, DamageIsOneLine) {
  for (const char* bad :
       {"case\tpaddle.add", "what\t1", "minute\t1\t2", "minute\t1\t2\t3\t4", "minute\t1\t2\tx",
        "taken_back\t1 ", "case\ta\t\t0\tgood\t0\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1"}) {
    Tally tally;
    const Status refused = tally.add_text(bad);
    ASSERT_FALSE(refused.has_value()) << bad;
    EXPECT_THAT(refused.error().message, HasSubstr("damaged"));
  }
}

TEST(TraitsOfACase, AreInItsText) {
  EXPECT_EQ(traits_of(kAdd), (CaseTraits{"paddle.add", "float32", 1}));
  EXPECT_EQ(traits_of("no case at all"), (CaseTraits{"no case at all", "", 0}));
}

}  // namespace
}  // namespace assay
