// Answers that were wrong: the inputs of shared/timeline/failing with their right values (its
// README), and made traces of the same kinds, worked by hand.

#include <gmock/gmock.h>

#include "rank_trace.h"
#include "support.h"
#include "timeline/analysis/compare.h"
#include "timeline/analysis/hang.h"
#include "timeline/analysis/reports.h"
#include "timeline/kernel_kinds.h"
#include "timeline/merge.h"

namespace assay::timeline {
namespace {

using test::RankTrace;
using test::TheInsights;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr Nanos kMicro = 1000;

Nanos idle(const TimeShare& share, IdleCause cause) {
  return share.idle_by[static_cast<std::size_t>(cause)];
}
class Failing : public TheInsights {
 protected:
  void SetUp() override {
    if (test::shared_folder().empty() || !test::fs::exists(test::shared_folder() / "failing")) {
      GTEST_SKIP() << "no shared/timeline/failing beside the source tree";
    }
  }
  Result<Trace> read(const std::string& name) const {
    const std::vector<test::fs::path> paths{test::shared_folder() / "failing" / name};
    LoadOptions options;
    options.import.analysis = true;
    return load_traces(paths, options);
  }
  void take(const std::string& name) {
    auto trace = read(name);
    ASSERT_TRUE(trace) << trace.error().message;
    trace_ = std::move(*trace);
    analysis_ = analyse(trace_);
    insights_ = insights_of(trace_, analysis_);
  }
  const TimeShare& whole() const { return analysis_.devices.at(0).whole; }
};

TEST_F(Failing, ALoaderThatStarvesTheGpuIsTheHosts) {
  take("loader.json.gz");
  EXPECT_DOUBLE_EQ(mean_step(analysis_), 1.0);
  const TimeShare& total = analysis_.devices[0].total;
  EXPECT_EQ(total.span, 5000 * kMicro);
  EXPECT_EQ(total.compute, 1500 * kMicro);
  // 698 us until each launch has ended; 690 of them in the data loader.
  EXPECT_EQ(idle(total, IdleCause::host), 5 * 698 * kMicro);
  EXPECT_EQ(total.loading, 5 * 690 * kMicro);
  EXPECT_EQ(idle(total, IdleCause::drain), 0);
  const std::string text = analysis_table(analysis_) + insights_table(insights_);
  EXPECT_THAT(text, HasSubstr("data loader: 69.00% of the time"));
  EXPECT_THAT(text, HasSubstr("(host: data loader)"));
}

TEST_F(Failing, StepsAndRanksDoNotChangeFiguresByStep) {
  take("cmp_before");
  const Trace trace = std::move(trace_);
  const Analysis before = analysis_;
  const Insights insights = insights_;
  take("cmp_after");
  const Comparison comparison = compare({trace, before, insights}, {trace_, analysis_, insights_});
  EXPECT_DOUBLE_EQ(comparison.step.before, 1.0);
  EXPECT_DOUBLE_EQ(comparison.step.percent, 0);
  EXPECT_FALSE(comparison.slower(0.01));
  for (const ComparedSection& section : comparison.sections) {
    if (section.title == "step" || section.title.starts_with("rank")) continue;
    for (const ComparedRow& row : section.rows) {
      if (!row.before || !row.after) continue;
      EXPECT_DOUBLE_EQ(*row.before, *row.after) << row.name;
    }
  }
}

TEST_F(Failing, StepsWithoutGpuWorkCount) {
  take("hollow_steps.json.gz");
  EXPECT_DOUBLE_EQ(mean_step(analysis_), 1.0);
  const TimeShare& total = analysis_.devices[0].total;
  EXPECT_EQ(total.span, 32'000 * kMicro);
  EXPECT_EQ(total.compute, 1000 * kMicro);
  ASSERT_EQ(insights_.paths.size(), 32U);
  EXPECT_EQ(insights_.paths[20].length, 1000 * kMicro);
  EXPECT_EQ(insights_.quality.hollow_steps, 30U);
  EXPECT_EQ(insights_.quality.hollow_time, 30'000 * kMicro);
  EXPECT_EQ(insights_.quality.lost_launches, 150U);
  EXPECT_EQ(insights_.quality.lost_time, 450 * kMicro);
}

TEST_F(Failing, FusedKernelsCompute) {
  take("inductor.json.gz");
  EXPECT_EQ(analysis_.devices[0].counts.communication_kernels, 1U);
  EXPECT_EQ(whole().compute, 300 * kMicro);
  EXPECT_EQ(whole().communication, 100 * kMicro);
}

TEST_F(Failing, ClocksOfTwoRanksAreRelated) {
  take("skew_nohost");
  for (const CollectiveCall& call : insights_.collectives.calls) {
    for (const CollectivePart& part : call.parts) EXPECT_EQ(part.waiting, 0);
    EXPECT_EQ(call.last, kNone);
  }
  EXPECT_DOUBLE_EQ(mean_step(analysis_), 1.0);
  EXPECT_THAT(trace_.notes, testing::Contains(HasSubstr("clocks: 2 related")));
}

TEST_F(Failing, TwoRunsInOneFolderAreRefused) {
  const auto trace = read("two_runs");
  ASSERT_FALSE(trace);
  EXPECT_THAT(trace.error().message, HasSubstr("run1_rank0.json"));
  EXPECT_THAT(trace.error().message, HasSubstr("run2_rank0.json"));
  EXPECT_THAT(trace.error().message, HasSubstr("--ranks"));
}

TEST_F(Failing, AnEmptyFileIsNamed) {
  take("zero_rank");
  EXPECT_EQ(analysis_.devices.size(), 3U);
  EXPECT_THAT(quality_table(insights_.quality), HasSubstr("rank2.json"));
  EXPECT_EQ(insights_.quality.dropped, 1U);
}

TEST_F(Failing, WhatIsReadIsReadWhole) {
  struct Expected {
    const char* file;
    Nanos compute, communication, idle;
  };
  for (const Expected& expected :
       {Expected{"late_meta.json.gz", 60, 60, 20}, Expected{"be_bare.json.gz", 60, 60, 10},
        Expected{"nan.json.gz", 60, 60, 20}}) {
    take(expected.file);
    ASSERT_EQ(analysis_.devices.size(), 1U) << expected.file;
    EXPECT_EQ(analysis_.devices[0].counts.kernels, 3U) << expected.file;
    EXPECT_EQ(whole().compute, expected.compute * kMicro) << expected.file;
    EXPECT_EQ(whole().communication, expected.communication * kMicro) << expected.file;
    EXPECT_EQ(whole().idle, expected.idle * kMicro) << expected.file;
    EXPECT_EQ(trace_.files[0].dropped(), 0U) << expected.file;
  }
  take("frac.json.gz");
  EXPECT_EQ(whole().compute, 10'000 * kMicro);
  EXPECT_EQ(whole().span, 19'995 * kMicro);
}

TEST_F(Failing, PaddlesRangesAndMemoryAreLikeAnyones) {
  take("pad_pipe");
  ASSERT_FALSE(analysis_.schedules.empty());
  for (const Schedule& schedule : analysis_.schedules) {
    EXPECT_EQ(schedule.kind, ScheduleKind::one_f_one_b);
    EXPECT_EQ(schedule.stages, 2U);
    EXPECT_EQ(schedule.micro_batches, 4U);
    EXPECT_NEAR(schedule.ideal_bubble, 0.2, 1e-9);
    EXPECT_NEAR(schedule.measured_bubble, 0.2, 0.02);
  }
  ASSERT_FALSE(insights_.memory.empty());
  EXPECT_EQ(insights_.memory[0].rank, 0);
  EXPECT_EQ(insights_.memory[0].device, 0);
  EXPECT_EQ(insights_.memory[0].allocated, 1'073'741'824);
  EXPECT_EQ(insights_.memory[0].reserved, 2'147'483'648);
}

TEST_F(Failing, AMergeChangesNoFigure) {
  for (const char* name : {"s_zb_torch", "pad_pipe", "cmp_after"}) {
    take(name);
    const std::string before = analysis_json(analysis_);
    const std::vector<test::fs::path> paths{test::shared_folder() / "failing" / name};
    auto trace = load_traces(paths, {});
    ASSERT_TRUE(trace);
    const test::TempFolder out;
    ASSERT_TRUE(write_trace(*trace, OutputPaths::in(out.path())));
    for (const char* file : {"pipeline_profile.json", "pipeline_profile_perfetto.json"}) {
      LoadOptions options;
      options.import.analysis = true;
      const std::vector<test::fs::path> merged{out / file};
      const auto back = load_traces(merged, options);
      ASSERT_TRUE(back) << back.error().message;
      nlohmann::json then = nlohmann::json::parse(before);
      nlohmann::json now = nlohmann::json::parse(analysis_json(analyse(*back)));
      then.erase("notes");
      now.erase("notes");
      EXPECT_EQ(now, then) << name << " " << file;
    }
  }
}

TEST_F(Failing, RetiredEntriesHaveEnded) {
  for (const char* name : {"fr_retired", "fr_real_gloo"}) {
    take(name);
    EXPECT_TRUE(find_hangs(trace_).empty()) << name;
    EXPECT_THAT(hang_table(trace_), HasSubstr("all collectives ended"));
  }
}

TEST_F(Failing, RanksOfDumpsComeFromTheirNames) {
  take("fr_hostname");
  const auto hangs = find_hangs(trace_);
  ASSERT_EQ(hangs.size(), 1U);
  EXPECT_THAT(hangs[0].not_called, ElementsAre(2));
  EXPECT_THAT(hangs[0].waiting, ElementsAre(0, 1, 3));
  EXPECT_THAT(hangs[0].no_dump, testing::IsEmpty());
  EXPECT_THAT(hang_table(trace_), HasSubstr("ranks 0, 1, 3 wait at /app/model.py:42 (forward)"));
}

TEST_F(Failing, AMismatchOfSizesIsNamed) {
  take("fr_size");
  const std::string text = hang_table(trace_);
  EXPECT_THAT(text, HasSubstr("rank 1 has nccl:all_reduce [[2048]] Float"));
  EXPECT_THAT(text, HasSubstr("ranks 0, 2 have nccl:all_reduce [[1024]] Float"));
}

TEST_F(Failing, ADamagedDumpIsPassedOver) {
  take("fr_trunc");
  EXPECT_THAT(quality_table(insights_.quality), HasSubstr("nccl_trace_rank_0"));
  ASSERT_EQ(trace_.sources.size(), 1U);
  EXPECT_EQ(trace_.sources[0].rank, 1);
}

// One launch of 3 us every 20 us, kernels of 5 us: the GPU waits for each launch.
TEST_F(TheInsights, StepsThatWaitForLaunches) {
  RankTrace rank(0, 1);
  for (int step = 0; step < 2; ++step) {
    rank.range(fmt::format("ProfilerStep#{}", step), 1000 * step, 1000 * step + 1000);
    for (int i = 0; i < 50; ++i) {
      const int at = 1000 * step + 20 * i;
      rank.kernel("k", at, at + 5, at + 10);
    }
  }
  load({rank});
  // Idle 15 us before each kernel but the first (4 us of the device): 11 of the host.
  EXPECT_EQ(insights_.replay.recorded, 1000 * kMicro);
  EXPECT_LT(insights_.replay.prompt, 500 * kMicro);
}

// The GPU runs 300 us behind the host: no step waits for its launches, and the last one ends with
// its work.
TEST_F(TheInsights, AGpuThatIsBehindEndsStepsWithItsWork) {
  RankTrace rank(0, 1);
  for (int step = 0; step < 4; ++step) {
    const int mark = 100 * step;
    rank.range(fmt::format("ProfilerStep#{}", step), mark, mark + 100);
    rank.kernel("k", mark + 10, 20 + 400 * step, 420 + 400 * step);
  }
  load({rank});
  // The first begins at its mark; then each lasts until its work has ended.
  EXPECT_THAT(analysis_.lengths, ElementsAre(420'000, 400'000, 400'000, 400'000));
  EXPECT_EQ(idle(analysis_.devices[0].total, IdleCause::host), 11 * kMicro);
}

// Two stages: the second waits 100 us for the first at the start, the first for it at the end; then
// the host does nothing for 80 us.
TEST_F(TheInsights, OnlyStagesOfAPipelineFillAndDrain) {
  RankTrace ranks[] = {RankTrace(0), RankTrace(1)};
  for (RankTrace& rank : ranks) rank.range("ProfilerStep#0", 0, 500);
  ranks[0].range("Forward 0", 0, 20).kernel("f", 1, 20, 100);
  ranks[1].range("Forward 0", 0, 20).kernel("f", 1, 100, 200);
  ranks[1].range("Backward 0", 20, 30).kernel("b", 21, 200, 300);
  ranks[0].range("Backward 0", 20, 30).kernel("b", 21, 300, 400);
  ranks[0].range("Forward 1", 30, 40).kernel("f", 31, 400, 410);
  ranks[1].range("Forward 1", 30, 40).kernel("f", 31, 410, 415);
  ranks[1].range("Backward 1", 40, 50).kernel("b", 41, 415, 418);
  ranks[0].range("Backward 1", 40, 50).kernel("b", 41, 418, 420);
  load({ranks[0], ranks[1]});
  ASSERT_NE(analysis_.schedules[0].kind, ScheduleKind::none);
  const TimeShare& first = analysis_.devices[0].total;
  EXPECT_EQ(idle(first, IdleCause::fill), 0);
  EXPECT_EQ(idle(first, IdleCause::dependency), (200 + 8) * kMicro);
  EXPECT_EQ(idle(first, IdleCause::host), (2 + 80) * kMicro);
  EXPECT_EQ(idle(first, IdleCause::device), 18 * kMicro);
  const TimeShare& second = analysis_.devices[1].total;
  EXPECT_EQ(idle(second, IdleCause::fill), 100 * kMicro);
  EXPECT_EQ(idle(second, IdleCause::drain), 2 * kMicro);
  EXPECT_EQ(idle(second, IdleCause::host), 80 * kMicro);
}

// Ranks without a host's name. The second one's clock is 40 ms ahead and gains 20 us a second; it
// comes 100 us late to each of 40 collectives, a quarter second apart. One leaves 3 ms late.
TEST_F(TheInsights, ClocksDriftAndOneLateLeaverDoesNotMatter) {
  RankTrace first(0, 2, "");
  RankTrace second(1, 2, "");
  for (int i = 0; i < 40; ++i) {
    const int begin = 250'000 * i;
    const int end = begin + 1000;
    const auto clock = [](int time) { return time + 40'000 + time / 50'000; };
    first.collective("allreduce", begin, end, 1000);
    second.collective("allreduce", clock(begin + 100), clock(end + (i == 7 ? 3000 : 0)), 1000);
  }
  load({first, second});
  EXPECT_FALSE(trace_.clocks_assumed);
  ASSERT_EQ(insights_.collectives.calls.size(), 40U);
  for (const CollectiveCall& call : insights_.collectives.calls) {
    EXPECT_EQ(call.last, 1);
    EXPECT_NEAR(static_cast<double>(call.parts[1].begin - call.parts[0].begin), 100e3, 3e3);
  }
  EXPECT_EQ(insights_.collectives.stragglers[0].rank, 1);
  EXPECT_NEAR(static_cast<double>(insights_.collectives.stragglers[0].cost), 40 * 100e3, 40 * 3e3);
}

// Two collectives relate no clocks: nobody is blamed, whatever the times say.
TEST_F(TheInsights, TooFewCollectivesBlameNobody) {
  RankTrace first(0, 2, "");
  RankTrace second(1, 2, "");
  for (const int at : {0, 1000}) {
    first.collective("allreduce", at, at + 300, 1000);
    second.collective("allreduce", at + 100, at + 300, 1000);
  }
  load({first, second});
  EXPECT_TRUE(trace_.clocks_assumed);
  EXPECT_TRUE(insights_.collectives.stragglers.empty());
  EXPECT_THAT(trace_.notes, testing::Contains(HasSubstr("warning: nothing relates the clocks")));
  EXPECT_THAT(insights_table(insights_), Not(HasSubstr("came last")));
}

// One host, but its ranks' parts do not overlap: then they have no common clock. Their ends relate
// them.
TEST_F(TheInsights, AHostThatItsCollectivesContradictIsNoHost) {
  RankTrace first(0);
  RankTrace second(1);
  for (int i = 0; i < 5; ++i) {
    first.collective("allreduce", 1000 * i, 1000 * i + 100, 1000);
    second.collective("allreduce", 1000 * i + 500, 1000 * i + 600, 1000);
  }
  load({first, second});
  for (const CollectiveCall& call : insights_.collectives.calls) EXPECT_EQ(call.last, kNone);
  EXPECT_THAT(trace_.notes, testing::Contains(HasSubstr("clocks: 2 related")));
}

// Three ranks come to each collective at 0, 10 and 40 us: the last costs each other one (40 + 30)
// / 2.
TEST_F(TheInsights, WhatALateRankCostsIsByRank) {
  RankTrace ranks[] = {RankTrace(0, 3), RankTrace(1, 3), RankTrace(2, 3)};
  for (int rank = 0; rank < 3; ++rank) {
    const int late[] = {0, 10, 40};
    ranks[rank].collective("allreduce", late[rank], 100, 1000, "[0, 1, 2]");
    ranks[rank].collective("allreduce", 200, 300, 1000, "[0, 1, 2]");
  }
  load({ranks[0], ranks[1], ranks[2]});
  ASSERT_EQ(insights_.collectives.stragglers[0].rank, 2);
  EXPECT_EQ(insights_.collectives.stragglers[0].last, 1U);
  EXPECT_EQ(insights_.collectives.stragglers[0].cost, 35 * kMicro);
  EXPECT_EQ(insights_.collectives.calls[1].last, kNone);  // a tie
}

// From step 3 on, rank 2's kernels take 150 us instead of 100.
TEST_F(TheInsights, ASlowGpuIsNamedFromItsFirstStep) {
  std::vector<RankTrace> ranks;
  for (int rank = 0; rank < 4; ++rank) ranks.emplace_back(rank, 4);
  for (int step = 0; step < 8; ++step) {
    const int mark = 1000 * step;
    for (int rank = 0; rank < 4; ++rank) {
      const int took = rank == 2 && step >= 3 ? 150 : 100;
      ranks[static_cast<std::size_t>(rank)]
          .range(fmt::format("ProfilerStep#{}", step), mark, mark + 1000)
          .kernel("gemm", mark + 1, mark + 10, mark + 10 + took)
          .collective("allreduce", mark + 10 + took, mark + 300, 1000, "[0, 1, 2, 3]");
    }
  }
  load({ranks[0], ranks[1], ranks[2], ranks[3]});
  ASSERT_EQ(insights_.culprits.size(), 1U);
  EXPECT_EQ(insights_.culprits[0].name, "rank 2");
  EXPECT_EQ(insights_.culprits[0].since, 3);
  EXPECT_EQ(insights_.culprits[0].excess, 50 * kMicro);
  EXPECT_EQ(insights_.culprits[0].when, "since step 3");
  EXPECT_THAT(insights_.culprits[0].cause, HasSubstr("take 1.50 times as long"));
  EXPECT_THAT(insights_.culprits[0].cause, HasSubstr("most of it in gemm (+0.050 ms a step)"));
  EXPECT_EQ(insights_.culprits[0].operation, "gemm");
  // 50 us in five of eight steps.
  EXPECT_THAT(insights_members(insights_), HasSubstr("\"step_without_ns\": 968750"));
}

TEST_F(TheInsights, ASlowerRunIsToldFromChance) {
  const auto run = [&](std::initializer_list<int> steps) {
    RankTrace rank(0, 1);
    int mark = 0;
    int number = 0;
    for (const int took : steps) {
      rank.range(fmt::format("ProfilerStep#{}", number++), mark, mark + took);
      rank.kernel("work", mark + 1, mark + 10, mark + took - 10);
      mark += took;
    }
    load({rank});
  };
  run({1000, 1010, 990, 1000, 1010, 990});
  const Trace trace = std::move(trace_);
  const Analysis before = analysis_;
  const Insights insights = insights_;
  const auto change = [&](std::initializer_list<int> steps) {
    run(steps);
    return compare({trace, before, insights}, {trace_, analysis_, insights_});
  };
  const Comparison slower = change({1050, 1060, 1040, 1050});
  EXPECT_NEAR(slower.step.percent, 5, 1e-6);
  EXPECT_EQ(slower.step.verdict(), "slower");
  EXPECT_TRUE(slower.slower(3));
  EXPECT_FALSE(slower.slower(6));
  // The means differ by 5%, but so do the steps.
  const Comparison noise = change({800, 1300, 850, 1250});
  EXPECT_NEAR(noise.step.percent, 5, 1e-6);
  EXPECT_EQ(noise.step.verdict(), "no significant change");
  EXPECT_FALSE(noise.slower(3));
  // A slow first step is start-up.
  EXPECT_EQ(change({9000, 1000, 1010, 990, 1000, 1010, 990}).step.verdict(),
            "no significant change");
  const auto parsed = nlohmann::json::parse(comparison_text(slower, "json"));
  EXPECT_EQ(parsed.at("step").at("verdict"), "slower");
  EXPECT_THAT(comparison_text(slower, "markdown"), HasSubstr("| `compute` |"));
  EXPECT_THAT(comparison_text(slower, "markdown"), HasSubstr("| `compute` |"));
  EXPECT_THAT(comparison_text(slower, "table"), HasSubstr("step: 1.000 ms -> 1.050 ms (+5.00%"));
}

// 40 ranks: the table has their distribution and the one that differs, not 40 rows.
TEST_F(TheInsights, ManyRanksAreADistribution) {
  std::vector<test::fs::path> paths;
  for (int rank = 0; rank < 40; ++rank) {
    RankTrace trace(rank, 40, fmt::format("node{}", rank / 8));
    trace.range("ProfilerStep#0", 0, 1000).kernel("k", 1, 10, rank == 17 ? 810 : 510);
    paths.push_back(test::write(folder_ / fmt::format("r{}.json", rank), trace.text()));
  }
  const auto trace = load_traces(paths, {});
  ASSERT_TRUE(trace) << trace.error().message;
  const std::string text = analysis_table(analyse(*trace));
  EXPECT_LT(std::ranges::count(text, '\n'), 20);
  EXPECT_THAT(text, HasSubstr("median"));
  EXPECT_THAT(text, HasSubstr("1 of 40 devices differ"));
  EXPECT_THAT(text, HasSubstr("rank 17"));
  EXPECT_THAT(text, Not(HasSubstr("rank 18")));
}

TEST(KernelKinds, TellLibrariesFromWords) {
  for (const char* name :
       {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "void deep_ep::internode::dispatch<false, 8, true>(int4*, float*)",
        "void deepseek::ep::combine<__nv_bfloat16>(int)",
        "mori::moe::EpDispatchIntraNodeKernel<__hip_bfloat16>(mori::moe::EpDispatchCombineArgs)",
        "void tensorrt_llm::kernels::moeA2ADispatchKernel<8>(int)",
        "void pplx::a2a_dispatch_send_kernel<4>(int)", "hcom_allReduce__123_0_1",
        "oneccl_allreduce_kernel", "void vllm::cross_device_reduce_1stage<__half, 8>(int)",
        "(anonymous namespace)::one_shot_all_reduce_kernel<c10::BFloat16>(int)",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel<4>(int)"}) {
    EXPECT_EQ(kind_of_kernel(name), Kind::communication) << name;
  }
  for (const char* name :
       {"triton_poi_fused_all_reduce_mul_relu_0", "triton_red_fused_all_to_all_single_0",
        "triton__fused_reduce_scatter_tensor_2d3c", "cpp_fused_all_gather_into_tensor_3",
        "void at::native::elementwise_kernel<4, all_reduce_functor<float> >(int, nccl::args)",
        "void cutlass::Kernel<cutlass::gemm::all_gather_layout>(Params)",
        "void blockAllReduceSum<float>(float*)", "fn_all_reduce_add_5_kernel"}) {
    EXPECT_EQ(kind_of_kernel(name), Kind::compute) << name;
  }
  const auto kinds = KernelKinds::with({"mine"}, {"^nccl_like", "both"});
  ASSERT_TRUE(kinds);
  EXPECT_EQ(kinds->kind("mine_both"), Kind::communication);
  EXPECT_EQ(kinds->kind("nccl_like_gemm"), Kind::compute);
  EXPECT_FALSE(KernelKinds::with({}, {"("}));
}

}  // namespace
}  // namespace assay::timeline
