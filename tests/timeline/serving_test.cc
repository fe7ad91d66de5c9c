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
  const auto prefill = ServingBatch::kPrefill;
  const auto decode = ServingBatch::kDecode;
  const auto mixed = ServingBatch::kMixed;
  for (const auto& [name, expected] : std::initializer_list<std::pair<const char*, ServingBatch>>{
           {"execute_context_2(14721)_generation_0(0)", {prefill, 2, 14721, 0}},
           {"execute_context_0(0)_generation_64(64)", {decode, 64, 0, 64}},
           {"execute_context_2(6144)_generation_3(3)", {mixed, 5, 6144, 3}},
           {"execute_6147_context_2(sq6144sk7144sqsq20971520sqsk23019520)_generation_3("
            "sq3sk6144sqsq3sqsk6144)",
            {mixed, 5, 6144, 3}},
           {"execute_new_2_cached_0", {prefill, 2}},
           {"execute_new_1_cached_7", {ServingBatch::kUnknown, 8}},
           {"execute_new_0_cached_7", {ServingBatch::kUnknown, 7}},
           {"step[EXTEND bs=15 toks=15360]", {prefill, 15, 15360, 0}},
           {"step[SPLIT_PREFILL bs=15]", {prefill, 15, kNone, 0}},
           {"step[DECODE bs=32]", {decode, 32, 0, 32}},
           {"step[DECODE bs=64 g_sq=128 g_sqsq=256 g_sqsk=262144 g_sk=131072]",
            {decode, 64, 0, 128}},
           {"step[TARGET_VERIFY bs=4]", {decode, 4, 0, 4}},
           {"step[DRAFT_EXTEND_V2 bs=4]", {decode, 4, 0, 0}},
           {"step[MIXED bs=5]", {mixed, 5}},
           {"step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12]",
            {mixed, 2, 5, 1}},
           {"step[DLLM_EXTEND bs=5]", {ServingBatch::kUnknown, 5}},
           {"prefill[bs=2 tok=14721 ctx=[7803, 6918]]", {prefill, 2, 14721, 0}},
           {"decode[bs=117/128 tok=117 d=117]", {decode, 117, 0, 117}},
           {"decode[bs=128 tok=384 p=2 d=126]", {mixed, 128}},
           {"[Executor] _forward_step 7: 2 ctx reqs, 3 gen reqs", {mixed, 5, kNone, 3}},
           {"_forward_step: 0 ctx reqs, 12 gen reqs", {decode, 12, 0, 12}}}) {
    const auto batch = parse_serving_batch(name);
    ASSERT_TRUE(batch) << name;
    EXPECT_EQ(*batch, expected) << name << " is " << batch->phase << " " << batch->requests << " "
                                << batch->prefill_tokens << " " << batch->decode_tokens;
  }
  for (const char* other :
       {"execute_model", "step", "step[", "decode", "execute_context_", "prefill[]",
        "execute_context_0(0)_generation_0(0)", "step[IDLE bs=0]", " ctx reqs, ", ""}) {
    EXPECT_FALSE(parse_serving_batch(other)) << other;
  }
}

constexpr const char* kRunner = "/srv/sglang/srt/model_executor/model_runner.py(2130): ";
constexpr const char* kVllm = "vllm/v1/worker/gpu_model_runner.py(3310): ";

// Batches of 500 us without ranges, each in a Python frame with one attention kernel.
class Frames : public TheInsights {
 protected:
  void batches(std::initializer_list<std::pair<std::string, const char*>> frames,
               const std::string& more = "") {
    RankTrace rank(0, 1);
    int at = 0;
    for (const auto& [frame, kernel] : frames) {
      rank.event(
          fmt::format(R"("cat":"python_function","name":"{}","ts":{},"dur":100)", frame, at));
      rank.kernel("reshape_and_cache_flash_kernel", at + 4, at + 5, at + 10);
      rank.kernel(kernel, at + 10, at + 10, at + 400);
      at += 500;
    }
    if (!more.empty()) {
      rank.event(fmt::format(R"("cat":"python_function","name":"{}","ts":{},"dur":9)", more, at));
    }
    load({rank});
    for (const ServingPhase& phase : insights_.serving) {
      phases_[phase.name] = phase.steps;
      EXPECT_EQ(phase.requests, kNone);
    }
  }
  std::map<std::string, std::size_t> phases_;
};

TEST_F(Frames, TellPrefillFromDecode) {
  batches({{std::string(kRunner) + "forward_extend", "flash_fwd_kernel"},
           {std::string(kRunner) + "forward_decode", "flash_fwd_kernel"},
           {"sglang/srt/model_executor/cuda_graph_runner.py(880): replay", "flash_fwd_kernel"}});
  EXPECT_THAT(phases_, ElementsAre(std::pair("decode", 2U), std::pair("prefill", 1U)));
  EXPECT_EQ(analysis_.steps.size(), 3U);
  EXPECT_THAT(insights_table(insights_), HasSubstr("?"));
  EXPECT_THAT(answer_table(analysis_, insights_), testing::Not(HasSubstr("inference:")));
}

TEST_F(Frames, OfMixedChunksTellNoPrefill) {
  batches({{std::string(kRunner) + "forward_extend", "flash_fwd_kernel"}},
          "sglang/srt/managers/schedule_batch.py(1671): mix_with_running");
  EXPECT_THAT(phases_, ElementsAre(std::pair("not told apart", 1U)));
  EXPECT_THAT(answer_table(analysis_, insights_),
              HasSubstr("inference: nothing in the trace tells"));
}

TEST_F(Frames, LeaveThePhaseToKernelsThatAreSure) {
  const std::string run = std::string(kVllm) + "execute_model";
  batches({{run, "void vllm::paged_attention_v2_kernel<float>(float*)"},
           {run, "kernel_unified_attention_3d"},
           {run, "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128PersistentContext"},
           {run, "_fwd_grouped_kernel_stage1"},
           {run, "void flash::flash_fwd_splitkv_kernel<T>(P)"},
           {run, "void flashinfer::BatchPrefillWithPagedKVCacheKernel<K>(P)"},
           {run, "kernel_unified_attention_2d"}});
  EXPECT_THAT(phases_, ElementsAre(std::pair("decode", 3U), std::pair("not told apart", 3U),
                                   std::pair("prefill", 1U)));
}

TEST_F(TheInsights, AServerWithoutBatchesIsTold) {
  RankTrace rank(0, 1);
  rank.kernel("void vllm::reshape_and_cache_flash_kernel<T>(T*)", 0, 5, 10);
  rank.kernel("void flash::flash_fwd_splitkv_kernel<T>(P)", 2, 10, 90);
  load({rank});
  EXPECT_THAT(answer_table(analysis_, insights_),
              HasSubstr("inference: nothing in the trace tells"));
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
