// Inference: the steps of servers, by the names that vLLM, SGLang and ATOM record.

#include "timeline/serving.h"

#include <gmock/gmock.h>

#include "rank_trace.h"

namespace assay::timeline {
namespace {

using test::RankTrace;
using test::TheInsights;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ServingBatches, OfKnownServers) {
  struct Counts {
    const char* name;
    int prefills, prefill_tokens, decodes, decode_tokens;
  };
  for (const Counts& known :
       {Counts{"execute_context_2(14721)_generation_0(0)", 2, 14721, 0, 0},
        Counts{"execute_context_0(0)_generation_64(64)", 0, 0, 64, 64},
        Counts{"execute_context_2(6144)_generation_3(3)", 2, 6144, 3, 3},
        Counts{"execute_6147_context_2(sq6144sk7144sqsq20971520sqsk23019520)_generation_3("
               "sq3sk6144sqsq3sqsk6144)",
               2, 6144, 3, 3},
        Counts{"execute_new_1_cached_7", 1, 0, 7, 7},
        Counts{"step[EXTEND bs=15 toks=15360]", 15, 15360, 0, 0},
        Counts{"step[DECODE bs=32]", 0, 0, 32, 32},
        Counts{"step[DECODE bs=64 g_sq=128 g_sqsq=256 g_sqsk=262144 g_sk=131072]", 0, 0, 64, 128},
        Counts{"step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12]", 1, 5, 1,
               1},
        Counts{"prefill[bs=2 tok=14721 ctx=[7803, 6918]]", 2, 14721, 0, 0},
        Counts{"decode[bs=117/128 tok=117 d=117]", 0, 0, 117, 117}}) {
    const auto batch = parse_serving_batch(known.name);
    ASSERT_TRUE(batch) << known.name;
    EXPECT_EQ(batch->prefills, known.prefills) << known.name;
    EXPECT_EQ(batch->prefill_tokens, known.prefill_tokens) << known.name;
    EXPECT_EQ(batch->decodes, known.decodes) << known.name;
    EXPECT_EQ(batch->decode_tokens, known.decode_tokens) << known.name;
  }
  for (const char* other : {"execute_model", "step", "step[", "decode", "execute_context_",
                            "prefill[]", "execute_context_0(0)_generation_0(0)", ""}) {
    EXPECT_FALSE(parse_serving_batch(other)) << other;
  }
}

// A prefill of 400 us, then three decodes of 100 us by a graph of two kernels; before each decode
// the host samples for 50 us. SGLang's range is within vLLM's.
TEST_F(TheInsights, ServersHavePhases) {
  RankTrace rank(0, 1);
  rank.range("execute_context_4(4096)_generation_0(0)", 0, 450)
      .range("step[EXTEND bs=4 toks=4096]", 5, 440);
  rank.kernel("gemm", 2, 10, 410);
  for (int step = 0; step < 3; ++step) {
    const int at = 450 + 150 * step;
    rank.range("sample", at - 38, at + 10);
    rank.range("execute_context_0(0)_generation_4(4)", at + 10, at + 100);
    rank.graph({"gemm", "attention"}, at + 11, at + 15, 50);
  }
  load({rank});
  ASSERT_EQ(analysis_.steps.size(), 4U);
  ASSERT_EQ(insights_.serving.size(), 2U);
  const ServingPhase& decode = insights_.serving[0];
  EXPECT_EQ(decode.name, "decode");
  EXPECT_EQ(decode.steps, 3U);
  EXPECT_EQ(decode.decode_tokens, 12);
  EXPECT_EQ(decode.kernels, 6U);
  EXPECT_EQ(decode.of_graphs, 6U);
  const ServingPhase& prefill = insights_.serving[1];
  EXPECT_EQ(prefill.prefill_tokens, 4096);
  EXPECT_EQ(prefill.of_graphs, 0U);
  Nanos sum = 0;
  for (const ServingPhase& phase : insights_.serving) sum += phase.time;
  EXPECT_EQ(sum, analysis_.time());
  ASSERT_FALSE(insights_.hosts.empty());
  EXPECT_EQ(insights_.hosts[0].what, "sample");
  EXPECT_THAT(insights_table(insights_), HasSubstr("prefill"));
}

// Batches of other sizes are other work. One batch of four takes five times as long as its like.
TEST_F(TheInsights, OnlyEqualBatchesAreCompared) {
  RankTrace rank(0, 1);
  int at = 0;
  const auto batch = [&](const char* name, int took) {
    rank.range(name, at, at + took).kernel("gemm", at + 1, at + 2, at + took);
    at += took;
  };
  batch("step[EXTEND bs=4 toks=4096]", 40'000);
  for (int i = 0; i < 9; ++i) batch("step[DECODE bs=4]", i == 5 ? 5'000 : 1'000);
  batch("step[EXTEND bs=2 toks=1024]", 10'000);
  for (int i = 0; i < 9; ++i) batch("step[DECODE bs=6]", 1'500);
  load({rank});
  ASSERT_EQ(insights_.culprits.size(), 1U) << answer_table(analysis_, insights_);
  EXPECT_EQ(insights_.culprits[0].when, "step 6");
  EXPECT_THAT(insights_.culprits[0].cause, HasSubstr("take 5.01 times as long"));
}

// The profiler's steps hold several batches.
TEST_F(TheInsights, BatchesAreTheStepsOfAServer) {
  RankTrace rank(0, 1);
  rank.range("ProfilerStep#7", 0, 4'000);
  for (int i = 0; i < 4; ++i) {
    rank.range("execute_context_0(0)_generation_8(8)", 1'000 * i, 1'000 * i + 900);
    rank.kernel("gemm", 1'000 * i + 1, 1'000 * i + 2, 1'000 * i + 1'000);
  }
  load({rank});
  EXPECT_EQ(analysis_.steps.size(), 4U);
  ASSERT_EQ(insights_.serving.size(), 1U);
  EXPECT_EQ(insights_.serving[0].steps, 4U);
}

// The stream's first kernel waits 50 ms for nothing that is recorded: the batch before it still
// ran. Only a copy on another stream runs by then.
TEST_F(TheInsights, WorkFromBeforeTheRecordingIsNoIdleTime) {
  RankTrace rank(0, 1);
  rank.range("step[DECODE bs=4]", 0, 400);
  rank.kernel("copy_tokens", 2, 5, 8, 0, "", 3);
  rank.kernel("gemm", 10, 50'010, 52'010);
  rank.kernel("sample", 20, 52'010, 52'110);
  load({rank});
  EXPECT_EQ(analysis_.time(), 2'100'000);
  EXPECT_EQ(insights_.replay.prompt, 2'100'000);
  EXPECT_THAT(insights_.quality.lines(),
              ElementsAre(HasSubstr("1 devices still did earlier work")));
  ASSERT_EQ(insights_.serving.size(), 1U);
  EXPECT_EQ(insights_.serving[0].busy, 2'100'000);
  EXPECT_EQ(insights_.serving[0].waiting, 0);
  EXPECT_EQ(insights_.serving[0].kernels, 3U);
}

// The device waits 5 ms for an event, not for its host.
TEST_F(TheInsights, WithoutWaitsForTheHostADeviceStillWaits) {
  RankTrace rank(0, 1);
  rank.range("step[DECODE bs=4]", 0, 9'000);
  rank.kernel("gemm", 1'000, 1'010, 2'010);
  rank.kernel("gemm", 2'000, 7'010, 8'010);
  load({rank});
  EXPECT_EQ(analysis_.time(), 9'000'000);
  EXPECT_EQ(insights_.replay.prompt, 9'000'000 - 1'010'000);
}

}  // namespace
}  // namespace assay::timeline
