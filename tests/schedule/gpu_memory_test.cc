// What cases take on a GPU decides which of the next ones run side by side.

#include <gmock/gmock.h>

#include "jobs.h"
#include "schedule/queue.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kMib = 1 << 20;

// Other GPUs continue.
TEST(GpuMemory, WhatRanOutOfItRunsAloneThere) {
  Queue queue({kAllMemory, 100, 2});
  wire::JobT small = sized(1, 1, 5);
  small.attempt.memory = wire::MemoryNeed::whole_device;
  queue.put_back(sized(2, 2, 5));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(2));
  queue.put_back(small);
  queue.put_back(sized(3, 3, 5));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(3));
  queue.release(0, with_bytes(5));
  EXPECT_THAT(queue.lease(2), IsEmpty());
  queue.release(0, with_bytes(5));
  const std::vector<wire::JobT> alone = queue.lease(0);
  EXPECT_THAT(ids(alone), ElementsAre(1));
  EXPECT_NE(alone.front().attempt.memory, wire::MemoryNeed::estimated);
  queue.put_back(sized(4, 4, 5));
  queue.put_back(sized(5, 5, 5));
  EXPECT_THAT(queue.lease(2), IsEmpty());
  EXPECT_THAT(ids(queue.lease(1)), ElementsAre(4));
  queue.release(0, short_of_memory(5));
  EXPECT_THAT(ids(queue.lease(2)), ElementsAre(5));
}

// Slots 0 and 2 sit on the first GPU, slot 1 on the second.
TEST(GpuMemory, CasesWaitForThatOfTheirOwnGpu) {
  Queue queue({kAllMemory, 100, 2});
  for (std::uint64_t id = 1; id <= 4; ++id) queue.put_back(sized(id, 1, 60));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(1));
  EXPECT_THAT(queue.lease(2), IsEmpty());
  EXPECT_THAT(ids(queue.lease(1)), ElementsAre(2));
  queue.release(1, with_bytes(60));
  EXPECT_THAT(queue.lease(2), IsEmpty());
  queue.release(0, with_bytes(60));
  EXPECT_THAT(ids(queue.lease(2)), ElementsAre(3));
  EXPECT_THAT(ids(queue.lease(1)), ElementsAre(4));
}

wire::JobT of_kind(std::uint64_t id, const char* text, std::uint64_t mib) {
  wire::JobT made = sized(id, 1, mib * kMib);
  made.test_case.text = text;
  return made;
}

// A queue for a GPU on which each lane may take 1000 MiB.
Queue of_one_gpu() { return Queue({kAllMemory, 1000 * kMib, 1}); }

constexpr const char* kHalfSum = R"(paddle.sum(Tensor([7], "float16")))";
constexpr const char* kBoolSum = R"(paddle.sum(Tensor([7], "bool")))";
constexpr const char* kHalfAny = R"(paddle.any(Tensor([7], "float16")))";

// The dtype counts: a sum of bool makes integers first.
TEST(GpuMemory, CasesNeedWhatOthersOfTheirApiAndDtypeTook) {
  Queue queue = of_one_gpu();
  queue.learn(of_kind(1, kHalfSum, 900), 500 * kMib);
  for (std::uint64_t id = 2; id <= 3; ++id) queue.put_back(of_kind(id, kHalfSum, 900));
  queue.put_back(of_kind(4, kBoolSum, 900));
  queue.put_back(of_kind(5, kHalfAny, 900));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(2));  // 500 and a margin
  EXPECT_THAT(queue.lease(0), IsEmpty());
  queue.put_back(of_kind(6, kHalfSum, 700));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(6));
}

// Both lanes together could need more than the GPU has, if the estimate is too low. What others of
// its kind took says whether they do.
TEST(GpuMemory, TheLanesOfAGiantRunOneAfterTheOther) {
  Queue queue = of_one_gpu();
  for (const std::uint64_t mib : {510, 490}) queue.put_back(of_kind(mib, kHalfSum, mib));
  EXPECT_EQ(queue.lease(0).front().attempt.start, wire::Start::test_lane_first);
  EXPECT_EQ(queue.lease(0).front().attempt.start, wire::Start::together);
  Queue learns = of_one_gpu();
  learns.learn(of_kind(1, kHalfSum, 510), 510 * kMib);
  learns.put_back(of_kind(2, kHalfSum, 510));
  EXPECT_EQ(learns.lease(0).front().attempt.start, wire::Start::together);
  Queue other_lane_on_cpu({1000 * kMib, 1000 * kMib, 1});
  other_lane_on_cpu.put_back(of_kind(1, kHalfSum, 510));
  EXPECT_EQ(other_lane_on_cpu.lease(0).front().attempt.start, wire::Start::together);
}

// While one lane computes, the other only keeps its results.
TEST(GpuMemory, AGiantWhoseLanesTakeTurnsNeedsLess) {
  Queue queue = of_one_gpu();
  queue.put_back(of_kind(1, kHalfSum, 1000));
  queue.put_back(of_kind(2, kHalfSum, 250));
  const std::vector<wire::JobT> giant = queue.lease(0);
  EXPECT_THAT(ids(giant), ElementsAre(1));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(2));
  queue.put_back(of_kind(3, kHalfSum, 750));
  EXPECT_THAT(queue.lease(0), IsEmpty());
  queue.release(0, giant.front());
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(3));
}

// A small case that takes long must not keep the GPU from what fits no budget, nor the reverse.
TEST(GpuMemory, SmallCasesRunBesideAGiant) {
  Queue queue({kAllMemory, 100, 1});
  queue.put_back(sized(1, 1, 12));
  const std::vector<wire::JobT> small = queue.lease(0);
  EXPECT_THAT(ids(small), ElementsAre(1));
  queue.put_back(sized(2, 2, 200));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(2));
  queue.put_back(sized(3, 3, 12));
  queue.put_back(sized(4, 4, 200));
  EXPECT_THAT(queue.lease(0), IsEmpty());
  queue.release(0, small.front());
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(3));
}

// Integers have no gradients.
TEST(GpuMemory, IntegersNeedHalf) {
  Queue queue = of_one_gpu();
  for (std::uint64_t id = 1; id <= 2; ++id) {
    queue.put_back(of_kind(id, R"(paddle.abs(Tensor([7], "int8")))", 990));
    queue.put_back(of_kind(id + 2, R"(paddle.cast(Tensor([7], "int8"), "float64"))", 990));
  }
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(1));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(2));
  EXPECT_THAT(queue.lease(0), IsEmpty());
}

// The GPU has 3000 MiB for one lane while the others idle.
TEST(GpuMemory, WhatTookMoreThanItsEstimateIsAdmittedWithMore) {
  for (const std::uint64_t took : {2000, 4000}) {
    Queue queue({kAllMemory, 1000 * kMib, 1, 3000 * kMib});
    queue.learn(of_kind(1, kBoolSum, 400), took * kMib);
    queue.put_back(of_kind(2, kBoolSum, 400));
    const std::vector<wire::JobT> giant = queue.lease(0);
    EXPECT_EQ(giant.front().attempt.start, wire::Start::test_lane_first);
    EXPECT_EQ(giant.front().attempt.memory,
              took < 3000 ? wire::MemoryNeed::estimated : wire::MemoryNeed::whole_device);
    queue.put_back(of_kind(3, kHalfSum, 200));
    EXPECT_THAT(queue.lease(0), IsEmpty());
    queue.release(0, giant.front());
    EXPECT_THAT(ids(queue.lease(0)), ElementsAre(3));
  }
}

// One case that needs much does not keep the others apart for good.
TEST(GpuMemory, AnExceptionIsForgotten) {
  Queue queue = of_one_gpu();
  const wire::JobT usual = of_kind(1, kHalfSum, 400);
  queue.learn(usual, 4000 * kMib);
  for (int i = 0; i < 40; ++i) queue.learn(usual, 200 * kMib);
  queue.put_back(usual);
  queue.put_back(of_kind(2, kHalfSum, 400));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(1));
  EXPECT_THAT(ids(queue.lease(0)), ElementsAre(2));
}

}  // namespace
}  // namespace assay
