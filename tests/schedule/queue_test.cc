#include "schedule/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

#include "jobs.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kPlenty = std::uint64_t{1} << 40U;

Queue filled(std::uint64_t budget, const std::vector<wire::JobT>& cases) {
  Queue queue({budget, 0, 0});
  for (const wire::JobT& each : cases) queue.add(each);
  queue.sort();
  return queue;
}

// Case i has i elements.
Queue of_sizes(std::uint64_t count) {
  std::vector<wire::JobT> cases;
  for (std::uint64_t i = 1; i <= count; ++i) cases.push_back(sized(i, i));
  return filled(kPlenty, cases);
}

TEST(Queue, TheFirstLeaseOfASlotIsCheapTheNextAreExpensive) {
  Queue queue = of_sizes(100);
  const auto first = ids(queue.lease(0));
  EXPECT_EQ(first.front(), 1U);
  EXPECT_LT(first.back(), 10U);
  EXPECT_EQ(ids(queue.lease(0)).front(), 100U);
  EXPECT_EQ(ids(queue.lease(1)).front(), first.back() + 1);  // the first one of another slot
}

// Three cases that hang would otherwise hang one after another, beside an idle slot.
TEST(Queue, FewCasesAreSharedOut) {
  Queue queue({kPlenty, 0, 0});
  for (std::uint64_t id = 1; id <= 3; ++id) queue.add(sized(id, id));
  queue.sort(2);
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(1, 2));
  EXPECT_THAT(ids(queue.lease(1)), ElementsAre(3));
  Queue more({kPlenty, 0, 0});
  for (std::uint64_t id = 1; id <= 40; ++id) more.add(sized(id, id));
  more.sort(2);
  EXPECT_EQ(more.lease(0).size(), 8U);
  EXPECT_EQ(more.lease(1).size(), 8U);
  EXPECT_EQ(more.lease(0).size(), 12U);
  EXPECT_EQ(more.lease(1).size(), 6U);
}

// The other half of the slots comes from the cheap end and meets the first half.
TEST(Queue, EverySecondSlotGoesUp) {
  Queue queue = of_sizes(300);
  (void)queue.lease(0);
  (void)queue.lease(1);
  const auto down = ids(queue.lease(0));
  const auto up = ids(queue.lease(1));
  EXPECT_EQ(down.front(), 300U);
  EXPECT_EQ(down.back(), 300U - down.size() + 1);
  EXPECT_EQ(up.front(), 17U);
  EXPECT_EQ(up.back(), 17U + up.size() - 1);
}

TEST(Queue, EveryCaseIsLeasedOnceMostExpensiveFirst) {
  Queue queue = of_sizes(1000);
  (void)queue.lease(0);
  std::set<std::uint64_t> seen;
  std::uint64_t last = 1001;
  while (!queue.empty()) {
    for (const std::uint64_t id : ids(queue.lease(0))) {
      EXPECT_LT(id, last);
      last = id;
      EXPECT_TRUE(seen.insert(id).second);
    }
  }
  EXPECT_EQ(seen.size(), 992U);  // the first, cheap lease had 8
  EXPECT_THAT(queue.lease(0), IsEmpty());
}

// A lease is at most some seconds of work: four million elements, or one larger case.
TEST(Queue, LargeCasesTravelAlone) {
  Queue queue = filled(kPlenty, {sized(1, 1'000'000), sized(2, 3'000'000), sized(3, 3'000'000),
                                 sized(4, 9'000'000)});
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(1, 2));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(4));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(3));
}

TEST(Queue, MemoryIsAdmittedUpToTheBudget) {
  Queue queue = filled(100, {sized(1, 1, 60), sized(2, 2, 40), sized(3, 3, 1)});
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(1, 2));  // exactly the budget
  EXPECT_THAT(queue.lease(1), IsEmpty());
  queue.release(0, with_bytes(40));
  EXPECT_THAT(ids(queue.lease(1)), ElementsAre(3));
  EXPECT_TRUE(queue.empty());
}

// While a large case waits for memory, a small one runs.
TEST(Queue, ASmallCaseRunsMeanwhile) {
  std::vector<wire::JobT> cases;
  for (std::uint64_t id = 1; id <= 8; ++id) cases.push_back(sized(id, id));
  cases.push_back(sized(10, 10, 10));
  cases.push_back(sized(20, 20, 95));
  Queue queue = filled(100, cases);
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(10));
  EXPECT_THAT(queue.lease(0), IsEmpty());
  for (int i = 0; i < 8; ++i) queue.release(0, with_bytes(1));
  EXPECT_THAT(queue.lease(0), IsEmpty());  // 10 and 95 are still too much
  queue.release(0, with_bytes(10));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(20));
}

wire::JobT taking(std::uint64_t id, std::uint64_t elements, std::uint64_t work_us) {
  wire::JobT made = sized(id, elements);
  made.test_case.work_us = work_us;
  return made;
}

// Most verdicts come early: no slot takes a long case before a twelfth of the other work has gone
// out.
TEST(Queue, TheFirstTwelfthIsCheapForAllSlots) {
  constexpr std::uint64_t kEachUs = 100'000;
  Queue queue({kPlenty, 0, 0});
  for (std::uint64_t id = 1; id <= 3'000; ++id) queue.add(taking(id, id, kEachUs));
  queue.add(taking(5'000, 5'000, 5'000'000));
  queue.sort(2);
  std::vector<std::uint64_t> leased;
  std::size_t before = 0;
  for (std::uint32_t slot = 0; leased != std::vector<std::uint64_t>{5'000}; slot ^= 1U) {
    ASSERT_FALSE(queue.empty());
    before += leased.size();
    leased = ids(queue.lease(slot));
  }
  EXPECT_GE(before, 240U);  // without the work that would have exceeded it
  EXPECT_LE(before, 270U);  // with the leases of a second that had started
}

// More cases do not put off the long ones again.
TEST(Queue, TheFirstTwelfthIsThatOfTheFirstCases) {
  Queue queue({kPlenty, 0, 0});
  for (std::uint64_t id = 1; id <= 100; ++id) queue.add(taking(id, id, 100'000));
  queue.add(taking(1'000, 1'000, 5'000'000));
  queue.sort(2);
  (void)queue.lease(0);  // eight cases: nearly a twelfth
  for (std::uint64_t id = 101; id <= 200; ++id) queue.add(taking(id, id, 100'000));
  queue.sort(2);
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(1'000));
}

// A case that takes long, known or expected, comes first and travels alone, however few elements it
// has.
TEST(Queue, LongCasesAreExpensive) {
  Queue queue = filled(kPlenty, {taking(1, 3'000'000, 60'000), taking(2, 300'000, 90'000'000),
                                 taking(3, 10, 600), taking(4, 400'000, 80'000'000)});
  EXPECT_THAT(ids(queue.lease(1)), ElementsAre(3, 1));
  EXPECT_THAT(ids(queue.lease(1)), ElementsAre(2));  // the longest first, on every slot
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(4));
}

// Of cases that fit no budget, with saturated bytes, one runs at a time. It does not wrap the
// budget's count.
TEST(Queue, HugeCasesRunOneAfterAnother) {
  Queue queue = filled(
      100, {sized(1, 1, 13), sized(2, kAllMemory, kAllMemory), sized(3, kAllMemory, kAllMemory)});
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(1));
  EXPECT_THAT(queue.lease(0), IsEmpty());  // 13 of 100 are more than an eighth
  queue.release(0, with_bytes(13));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(3));
  EXPECT_THAT(queue.lease(0), IsEmpty());
  EXPECT_THAT(queue.lease(1), IsEmpty());
  queue.release(0, with_bytes(kAllMemory));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(2));
}

// Other slots run small cases, up to an eighth of the budget.
TEST(Queue, SmallCasesRunBesideAHugeOne) {
  Queue queue = filled(
      100, {sized(1, 1, 4), sized(2, 20, 5), sized(3, 30, 92), sized(4, kAllMemory, kAllMemory)});
  EXPECT_THAT(ids(queue.lease(1)), ElementsAre(1, 2));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(4));
  EXPECT_THAT(queue.lease(1), IsEmpty());
  queue.put_back(sized(5, 40, 12));
  queue.put_back(sized(6, 50, 1));
  EXPECT_THAT(ids(queue.lease(1)), ElementsAre(6));
  for (const std::uint64_t bytes : {4, 5, 1}) queue.release(1, with_bytes(bytes));
  EXPECT_THAT(ids(queue.lease(1)), ElementsAre(5));
  queue.release(0, with_bytes(kAllMemory));
  EXPECT_THAT(queue.lease(0), IsEmpty());
  queue.release(1, with_bytes(12));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(3));
}

// No estimate holds for a case that ran out of memory: nothing runs beside it, however small.
TEST(Queue, ACaseThatRanOutOfMemoryRunsAloneNext) {
  wire::JobT huge = sized(1, kAllMemory, kAllMemory);
  huge.attempt.memory = wire::MemoryNeed::whole_device;
  wire::JobT small = sized(2, 2, 5);
  small.attempt.memory = wire::MemoryNeed::whole_device;
  Queue queue = filled(100, {sized(3, 3, 1), sized(4, kAllMemory, kAllMemory)});
  EXPECT_THAT(ids(queue.lease(1)), ElementsAre(3));
  queue.put_back(small);
  queue.put_back(huge);
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(4)) << "they wait, and nothing waits for them";
  queue.release(1, with_bytes(1));
  EXPECT_THAT(queue.lease(1), IsEmpty());
  queue.release(0, with_bytes(kAllMemory));
  queue.put_back(sized(5, 5, 1));
  for (const std::uint64_t bytes : {std::uint64_t{5}, kAllMemory}) {
    const std::vector<wire::JobT> alone = queue.lease(0);
    EXPECT_THAT(ids(alone), ElementsAre(bytes == 5 ? 2 : 1));
    EXPECT_NE(alone.front().attempt.memory, wire::MemoryNeed::estimated);
    EXPECT_THAT(queue.lease(1), IsEmpty());
    queue.release(0, short_of_memory(bytes));
  }
  const std::vector<wire::JobT> last = queue.lease(1);
  EXPECT_THAT(ids(last), ElementsAre(5));
  EXPECT_EQ(last.front().attempt.memory, wire::MemoryNeed::estimated);
}

TEST(Queue, KnowsWhatHadAllMemoryForItself) {
  Queue queue = filled(100, {sized(1, 1, 4), sized(2, 2, 5), sized(3, kAllMemory, 200),
                             sized(4, kAllMemory - 1, 101)});
  EXPECT_THAT(ids(queue.lease(1)), ElementsAre(1, 2));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(4));
  EXPECT_FALSE(queue.release(1, with_bytes(4)));
  EXPECT_FALSE(queue.release(1, with_bytes(5)));
  EXPECT_FALSE(queue.release(0, with_bytes(101)));  // some ran beside it
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(3));
  queue.put_back(sized(5, 5, 1));
  EXPECT_THAT(ids(queue.lease(1)), ElementsAre(5));
  EXPECT_FALSE(queue.release(1, with_bytes(1)));
  EXPECT_FALSE(queue.release(0, with_bytes(200)));  // one started beside it
  queue.put_back(sized(6, 6, 101));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(6));
  EXPECT_TRUE(queue.release(0, with_bytes(101)));
  queue.put_back(sized(7, 7, 100));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(7));
  EXPECT_FALSE(queue.release(0, with_bytes(100)));  // others could have run beside it
  Queue on_gpu({100, kPlenty, 1});
  on_gpu.put_back(sized(8, 8, 101));
  EXPECT_THAT(ids(on_gpu.lease(0)), ElementsAre(8));
  EXPECT_FALSE(on_gpu.release(0, with_bytes(101)));
}

// A case with a good part of the budget is for slots that have no other work.
TEST(Queue, LargeCasesAreNotLeasedAhead) {
  Queue queue = filled(160, {sized(1, 1, 10), sized(2, 2, 11), sized(3, 3, 10)});
  EXPECT_THAT(ids(queue.lease(1, true)), ElementsAre(1));
  EXPECT_THAT(queue.lease(1, true), IsEmpty());  // nor a more expensive one, before its turn
  EXPECT_THAT(ids(queue.lease(1)), ElementsAre(2, 3));
}

// A case that waits for memory is passed over, from either end and among the retries.
TEST(Queue, WhatIsNotAdmittedHoldsUpNothing) {
  Queue queue = filled(100, {sized(1, 1, 60), sized(2, 2, 60), sized(3, 3, 5), sized(4, 4, 60),
                             sized(5, 5, 6), sized(6, 6, 60)});
  EXPECT_THAT(ids(queue.lease(1)), ElementsAre(1, 3, 5));
  queue.put_back(sized(7, 7, 60));
  wire::JobT suspect = sized(8, 8, 3);
  suspect.attempt.slots_lost = 1;
  queue.put_back(suspect);
  EXPECT_TRUE(queue.next_is_suspect(0));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(8));
  EXPECT_FALSE(queue.next_is_suspect(0));
}

TEST(Queue, WhatComesBackRunsFirstAndOneByOne) {
  Queue queue = of_sizes(50);
  (void)queue.lease(0);
  wire::JobT again = sized(900, 1);
  again.attempt.number = 2;
  again.attempt.isolation = wire::Isolation::own_process;
  queue.put_back(again);
  queue.put_back(sized(901, 1));
  const auto leased = queue.lease(0);
  EXPECT_THAT(ids(leased), ElementsAre(900));
  EXPECT_EQ(leased[0].attempt.number, 2U);
  EXPECT_EQ(leased[0].attempt.isolation, wire::Isolation::own_process);
  EXPECT_THAT(ids(queue.lease(1)), ElementsAre(901));
  EXPECT_EQ(ids(queue.lease(0)).front(), 50U);
}

wire::JobT shared_retry(std::uint64_t id, const wire::Ran& first_ran) {
  wire::JobT again = sized(id, 10);
  again.attempt.number = 2;
  again.attempt.isolation = wire::Isolation::shared_retry;
  again.attempt.first_ran = first_ran;
  return again;
}

// They share a process. Case 10 ran again behind case 11, so each ran before the other.
TEST(Queue, SharedRetriesFollowNoCaseTwice) {
  Queue queue = filled(kPlenty, {sized(1, 1)});
  queue.put_back(shared_retry(10, {0, 1, 5}));
  queue.put_back(shared_retry(11, {0, 2, 2}));
  queue.put_back(shared_retry(12, {1, 2, 2}));
  queue.put_back(shared_retry(13, {0, 6, 6}));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(1)) << "they wait for others";
  EXPECT_THAT(queue.lease(0, true), IsEmpty());
  const auto shared = queue.lease(0);
  EXPECT_THAT(ids(shared), ElementsAre(13, 12, 11)) << "nothing else is left";
  for (const wire::JobT& each : shared) EXPECT_EQ(each.attempt.lease, shared[0].attempt.lease);
  const auto last = queue.lease(0);
  EXPECT_THAT(ids(last), ElementsAre(10));
  EXPECT_NE(last[0].attempt.lease, shared[0].attempt.lease);
  EXPECT_TRUE(queue.empty());
}

// A case that leaves its lane changed would fail again before the innocents of other APIs.
TEST(Queue, SharedRetriesAreOfOneApi) {
  EXPECT_FALSE(Queue({kPlenty, 0, 0}).shares_retries()) << "a lane on a CPU costs little";
  Queue queue({kPlenty, kPlenty, 1});
  EXPECT_TRUE(queue.shares_retries());
  for (std::uint64_t id = 0; id < 6; ++id) {
    wire::JobT again = shared_retry(id, {0, id, id});
    again.test_case.text = id % 2 == 0 ? "cos(1)" : "sin(1)";
    queue.put_back(again);
  }
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(5, 3, 1));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(4, 2, 0));
}

TEST(Queue, SharedRetriesWaitUntilTheyAreManyOrHurried) {
  Queue queue = of_sizes(10'000);
  const auto wait = [&](std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i < to; ++i) queue.put_back(shared_retry(20'000 + i, {0, i, i}));
  };
  wait(0, 31);
  EXPECT_LT(queue.lease(0).front().test_case.id, 20'000U);
  wait(31, 40);
  EXPECT_EQ(ids(queue.lease(0)).front(), 20'039U);
  EXPECT_LT(queue.lease(0).front().test_case.id, 20'000U) << "eight are left";
  queue.hurry();
  EXPECT_EQ(ids(queue.lease(0, true)).front(), 20'007U);
  EXPECT_LT(queue.lease(0).front().test_case.id, 20'000U);
  wait(40, 41);
  EXPECT_LT(queue.lease(0).front().test_case.id, 20'000U) << "the hurry was over";
}

// Memory admits them as if they were alone.
TEST(Queue, SharedRetriesKeepToTheMemoryBudget) {
  Queue queue({100, 0, 0});
  for (std::uint64_t id = 0; id < 3; ++id) {
    wire::JobT again = shared_retry(id, {0, id, id});
    again.test_case.bytes = 40;
    queue.put_back(again);
  }
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(2, 1));
  EXPECT_THAT(queue.lease(1), IsEmpty());
  queue.release(0, with_bytes(40));
  EXPECT_THAT(ids(queue.lease(1)), ElementsAre(0));
}

// A slot's own lanes for retries take 0.4 s each on a GPU, during which no other lane advances.
TEST(Queue, OnGpusRetriesStayWithFewSlots) {
  Queue queue({kPlenty, kPlenty, 1});
  for (std::uint64_t id = 0; id < 10; ++id) {
    wire::JobT again = sized(id, 10);
    again.attempt.isolation = wire::Isolation::own_process;
    queue.put_back(again);
  }
  wire::JobT lost = sized(90, 10);
  lost.attempt.slots_lost = 1;
  queue.put_back(lost);
  EXPECT_THAT(ids(queue.lease(3)), ElementsAre(0));
  EXPECT_THAT(ids(queue.lease(5)), ElementsAre(1)) << "ten wait: too many for one slot";
  EXPECT_THAT(ids(queue.lease(4)), ElementsAre(90)) << "what lost its slot may run anywhere";
  EXPECT_THAT(ids(queue.lease(4, true)), IsEmpty()) << "it has something to do";
  EXPECT_THAT(ids(queue.lease(3)), ElementsAre(2));
  queue.add(sized(91, 10));
  queue.sort(6);
  EXPECT_THAT(ids(queue.lease(4)), ElementsAre(91));
  EXPECT_THAT(ids(queue.lease(4)), ElementsAre(3))
      << "nothing else is left, and nobody sleeps beside work";
}

TEST(Queue, ReleasingMoreThanIsHeldDoesNotWrap) {
  Queue queue = filled(100, {sized(1, 1, 50)});
  queue.release(0, with_bytes(kAllMemory));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(1));
  queue.put_back(sized(2, 1, 60));
  EXPECT_THAT(queue.lease(0), IsEmpty());  // 50 are still held
}

// Forty small cases of four APIs, added in turn; each API has ten.
Queue of_four_apis(std::size_t slots) {
  static const std::array<std::string, 4> kApis{"a(1)", "b(1)", "c(1)", "d(1)"};
  Queue queue({kPlenty, kPlenty, 1});
  for (std::uint64_t id = 0; id < 40; ++id) {
    wire::JobT small = sized(id, 10);
    small.test_case.text = kApis[id % kApis.size()];
    queue.add(small);
  }
  queue.sort(slots);
  return queue;
}

std::string apis(const std::vector<wire::JobT>& leased) {
  std::string found;
  for (const wire::JobT& each : leased) found += each.test_case.text.front();
  return found;
}

TEST(Queue, OnGpusEachSlotHasApisOfItsOwn) {
  Queue queue = of_four_apis(2);
  EXPECT_EQ(apis(queue.lease(0)), "aaaaaaaa");
  EXPECT_EQ(apis(queue.lease(1)), "cccccccc");
  EXPECT_EQ(apis(queue.lease(1)), "ccdddddddddd");
  EXPECT_EQ(queue.size(), 12U);
  // It has none left, and takes half of another slot's cases, from the end.
  EXPECT_EQ(apis(queue.lease(1)), "bbbbbb");
  EXPECT_EQ(apis(queue.lease(0)), "aabbbb");
  EXPECT_TRUE(queue.empty());
}

// A batch has hundreds of cases; towards the end leases shrink, so that all slots end together.
TEST(Queue, OnGpusSmallCasesGoOutByTheHundred) {
  Queue queue({kPlenty, kPlenty, 1});
  for (std::uint64_t id = 0; id < 2000; ++id) queue.add(sized(id, 10));
  queue.sort(2);
  EXPECT_EQ(queue.enough(2), 256U);
  EXPECT_EQ(queue.lease(0).size(), 8U);
  EXPECT_EQ(queue.lease(0).size(), 256U);
  EXPECT_EQ(queue.lease(0).size(), 256U);
  EXPECT_EQ(queue.lease(0).size(), 240U) << "half of those that are left to it";
  EXPECT_EQ(queue.lease(0).size(), 120U);
  EXPECT_EQ(queue.lease(1).size(), 8U);
  for (int i = 0; i < 3; ++i) queue.lease(1);
  EXPECT_EQ(queue.enough(2), (2000U - 880U - 8U - 256U - 256U - 240U) / 4);
  EXPECT_EQ(filled(kPlenty, {}).enough(2), 32U);
}

// An idle GPU runs what memory allows.
TEST(Queue, OnGpusASmallCaseThatHasToWaitHoldsUpNoOther) {
  Queue queue({100, 100, 1});
  for (std::uint64_t id = 0; id < 4; ++id) queue.add(sized(id, 10, id % 2 == 0 ? 60 : 20));
  queue.sort(2);
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(0, 1));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(3)) << "the one that fits beside these";
  EXPECT_THAT(ids(queue.lease(1)), IsEmpty());
  queue.release(0, with_bytes(60));
  EXPECT_THAT(ids(queue.lease(1)), ElementsAre(2));
}

TEST(Queue, OnGpusWhatIsLargeOrTakesLongComesBeforeSmallCases) {
  Queue queue({kPlenty, kPlenty, 1});
  wire::JobT slow = sized(1, 10);
  slow.test_case.work_us = 2'000'000;
  slow.test_case.text = "a";
  wire::JobT small = sized(2, 10);
  small.test_case.text = "b";
  queue.add(small);
  queue.add(slow);
  queue.add(sized(3, 1'000'000));
  queue.sort(2);
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(2));  // a first lease is cheap
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(1));  // half of two
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(3));
  EXPECT_TRUE(queue.empty());
}

TEST(Queue, SmallCasesOnGpusKeepTheirPlacesWhenMoreComeIn) {
  Queue queue = of_four_apis(4);
  EXPECT_EQ(apis(queue.lease(3)), "dddddddd");
  wire::JobT more = sized(100, 10);
  more.test_case.text = "e(1)";
  queue.add(more);
  queue.sort(4);
  EXPECT_EQ(queue.size(), 33U);
  EXPECT_TRUE(queue.renew(100, 7));
  std::set<std::uint64_t> seen;
  while (!queue.empty()) {
    for (const wire::JobT& each : queue.lease(2)) {
      EXPECT_TRUE(seen.insert(each.test_case.id).second) << each.test_case.id;
      EXPECT_EQ(each.attempt.epoch, each.test_case.id == 100 ? 7U : 0U);
    }
  }
  EXPECT_EQ(seen.size(), 33U);
}

}  // namespace
}  // namespace assay
