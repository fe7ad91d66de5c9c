// What is told beside shares of time: jobs of named ranges, collectives, stragglers, kernels,
// memory, the critical path. Traces are made here; bandwidths are nccl-tests' formulas worked by
// hand.

#include "timeline/analysis/insights.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "rank_trace.h"
#include "support.h"
#include "timeline/analysis/job_names.h"
#include "timeline/analysis/reports.h"
#include "timeline/load.h"

namespace assay::timeline {
namespace {

using test::RankTrace;
using test::TheInsights;
using testing::ElementsAre;
using testing::HasSubstr;

// 1F1B of two stages, two micro batches; backward kernels come from another thread than the range.
TEST_F(TheInsights, RangesBecomeJobsOfTheirKernels) {
  RankTrace first(0);
  first.range("Forward 0", 0, 5)
      .kernel("f", 1, 10, 20)
      .range("Forward 1", 5, 8)
      .kernel("f", 6, 20, 30);
  first.range("Backward 0", 8, 12).kernel("b", 9, 50, 60, 1).kernel("b", 10, 60, 70, 1);
  first.range("Backward 1", 12, 16).kernel("b", 13, 80, 100, 1);
  RankTrace second(1);
  second.range("Forward 0", 0, 5)
      .kernel("f", 1, 20, 30)
      .range("Backward 0", 5, 8)
      .kernel("b", 6, 30, 50, 1);
  second.range("Forward 1", 8, 12)
      .kernel("f", 9, 50, 60)
      .range("Backward 1", 12, 16)
      .kernel("b", 13, 60, 80, 1);
  load({first, second});
  std::vector<std::string> jobs;
  for (const Slice& slice : trace_.slices) {
    if (!trace_.tracks[slice.track].jobs || trace_.tracks[slice.track].rank != 0) continue;
    jobs.push_back(fmt::format("{} {} {}-{}", trace_.strings.text(slice.category),
                               slice.micro_batch, slice.begin / 1000, slice.end / 1000));
  }
  EXPECT_THAT(jobs, ElementsAre("forward 0 10-20", "forward 1 20-30", "backward 0 50-70",
                                "backward 1 80-100"));
  ASSERT_EQ(analysis_.schedules.size(), 1U);
  EXPECT_EQ(analysis_.schedules[0].kind, ScheduleKind::one_f_one_b);
  // Four of nine units of each stage's time: 60 us of work in 90.
  EXPECT_NEAR(analysis_.schedules[0].measured_bubble, 1.0 / 3, 1e-9);
}

TEST_F(TheInsights, DataParallelRanksAreNoPipeline) {
  RankTrace ranks[] = {RankTrace(0), RankTrace(1)};
  for (RankTrace& rank : ranks) {
    rank.range("forward", 0, 5)
        .kernel("f", 1, 10, 20)
        .range("backward", 5, 8)
        .kernel("b", 6, 20, 40);
  }
  load({ranks[0], ranks[1]});
  EXPECT_EQ(analysis_.schedules[0].kind, ScheduleKind::none);
  EXPECT_THAT(analysis_.schedules[0].reason, HasSubstr("copies of one stage"));
}

// Nothing hands anything on, but their forwards do not run at the same time, either.
TEST_F(TheInsights, RanksThatDriftApartAreNoPipeline) {
  RankTrace ranks[] = {RankTrace(0, 4), RankTrace(1, 4), RankTrace(2, 4), RankTrace(3, 4)};
  int rank = 0;
  for (const int at : {300, 100, 200, 0}) {
    for (int micro = 0; micro < 3; ++micro) {
      const int begin = at + 1000 * micro;
      ranks[rank].range(fmt::format("Forward {}", micro), begin, begin + 5);
      ranks[rank].kernel("f", begin + 1, begin + 10, begin + 20);
      ranks[rank].range(fmt::format("Backward {}", micro), begin + 5, begin + 8);
      ranks[rank].kernel("b", begin + 6, begin + 20, begin + 40);
    }
    ++rank;
  }
  load({ranks[0], ranks[1], ranks[2], ranks[3]});
  EXPECT_EQ(analysis_.schedules[0].kind, ScheduleKind::none);
  EXPECT_THAT(analysis_.schedules[0].reason, HasSubstr("only 0% of the micro batches"));
}

// A rank that is always late is no second stage: nothing comes back from it.
TEST_F(TheInsights, ALateRankIsNoSecondStage) {
  RankTrace ranks[] = {RankTrace(0), RankTrace(1)};
  for (const int rank : {0, 1}) {
    for (int step = 0; step < 3; ++step) {
      const int at = 100 * step + 30 * rank;
      ranks[rank].range("forward", at, at + 5).kernel("f", at + 1, at + 10, at + 20);
    }
  }
  load({ranks[0], ranks[1]});
  EXPECT_EQ(analysis_.schedules[0].kind, ScheduleKind::none);
}

// Two data-parallel groups of a pipeline of two stages: ranks 0 and 1 hold the first, 2 and 3 the
// second.
TEST_F(TheInsights, EachDataParallelGroupHasAPipeline) {
  RankTrace ranks[] = {RankTrace(0, 4), RankTrace(1, 4), RankTrace(2, 4), RankTrace(3, 4)};
  const auto stage = [](RankTrace& rank, int forward, int backward) {
    for (int micro = 0; micro < 4; ++micro) {
      const int f = forward + 40 * micro;
      const int b = backward + 40 * micro;
      rank.range(fmt::format("Forward {}", micro), f - 9, f - 1).kernel("f", f - 8, f, f + 10);
      rank.range(fmt::format("Backward {}", micro), b - 9, b - 1).kernel("b", b - 8, b, b + 10);
    }
  };
  stage(ranks[0], 100, 130);
  stage(ranks[1], 101, 131);
  stage(ranks[2], 110, 120);
  stage(ranks[3], 111, 121);
  load({ranks[0], ranks[1], ranks[2], ranks[3]});
  EXPECT_THAT(analysis_.pipelines, ElementsAre(ElementsAre(0U, 2U), ElementsAre(1U, 3U)));
  EXPECT_EQ(analysis_.schedules[0].kind, ScheduleKind::one_f_one_b);
  EXPECT_EQ(analysis_.schedules[0].pipelines, 2U);
  EXPECT_EQ(analysis_.schedules[0].stages, 2U);
  EXPECT_THAT(analysis_table(analysis_), HasSubstr("1F1B, 2 pipelines of 2 stages"));
}

TEST_F(TheInsights, OverlappedPassesOfOneStageAreDualPipe) {
  RankTrace rank(0, 64);
  for (int layer = 0; layer < 4; ++layer) {
    const int at = layer * 100;
    rank.range("attn(F)", at, at + 10).kernel("a", at + 1, at + 20, at + 40);
    rank.range("mlp(B)", at + 10, at + 20).kernel("b", at + 11, at + 40, at + 60);
    rank.range("mlp(W)", at + 20, at + 30).kernel("w", at + 21, at + 60, at + 70);
    rank.range("mlp(F)", at + 30, at + 40).kernel("c", at + 31, at + 70, at + 90);
    rank.range("attn(B)", at + 40, at + 50).kernel("d", at + 41, at + 90, at + 110);
  }
  load({rank});
  EXPECT_EQ(analysis_.schedules[0].kind, ScheduleKind::dualpipe);
  EXPECT_THAT(analysis_.schedules[0].reason, HasSubstr("from one stage"));
}

TEST(Collectives, BandwidthsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor("allreduce", 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor("allgather", 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor("reducescatter", 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor("broadcast", 8), 1);
  EXPECT_DOUBLE_EQ(bus_factor("gather", 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor("scatter", 4), 0.75);
  EXPECT_EQ(element_bytes("BFloat16"), 2);
  EXPECT_EQ(element_bytes("Float8_e4m3fn"), 1);
  EXPECT_EQ(element_bytes("Float"), 4);
}

// Before PyTorch 2.3, kernels do not describe their collective: the call around their launch
// does, or the shapes of its tensors.
TEST_F(TheInsights, AKernelsCollectiveIsThatOfTheCallAroundIt) {
  RankTrace rank(0);
  rank.event(
      R"("cat":"cpu_op","name":"record_param_comms","ts":90,"dur":20,"args":{"Collective name":"_allgather_base","In msg nelems":100,"Out msg nelems":200,"Group size":2,"dtype":"BFloat16","Process Group Name":"7","Process Group Ranks":"[0, 1]"})");
  rank.kernel("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 95, 100, 110);
  rank.event(
      R"("cat":"user_annotation","name":"nccl:all_reduce","ts":190,"dur":20,"args":{"Input Dims":[[10, 20], [5]],"Input type":["float", "float"]})");
  rank.kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", 195, 200, 210);
  rank.kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", 300, 310, 320);
  load({rank});
  const auto& calls = insights_.collectives.calls;
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[0].name, "allgather");
  EXPECT_EQ(calls[0].bytes, 400);
  EXPECT_EQ(calls[0].group_size, 2);
  EXPECT_EQ(calls[1].name, "allreduce");
  EXPECT_EQ(calls[1].bytes, 820);
  EXPECT_EQ(calls[1].group_size, kNone);
  EXPECT_EQ(calls[2].bytes, kNone);
  EXPECT_THAT(insights_table(insights_), HasSubstr("?"));
}

// Rank 1 comes 30 us late to the first and rank 0 10 us to the second.
TEST_F(TheInsights, WaitingIsToldFromTransfer) {
  RankTrace first(0);
  first.collective("allreduce", 100, 150, 1'000'000).collective("allreduce", 210, 240, 500'000);
  RankTrace second(1);
  second.collective("allreduce", 130, 150, 1'000'000).collective("allreduce", 200, 240, 500'000);
  load({first, second});
  const auto& calls = insights_.collectives.calls;
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].bytes, 4'000'000);
  EXPECT_EQ(calls[0].algorithm, "Ring, LL");
  EXPECT_EQ(calls[0].transfer, 20'000);
  EXPECT_EQ(calls[0].last, 1);
  EXPECT_EQ(calls[0].parts[0].waiting, 30'000);
  EXPECT_EQ(calls[0].parts[1].waiting, 0);
  EXPECT_NEAR(calls[0].bus_bandwidth, 200.0, 1e-9);  // 4 MB in 20 us, factor 2 (n-1)/n = 1
  EXPECT_EQ(calls[1].last, 0);
  EXPECT_EQ(calls[1].transfer, 30'000);
  // 2 MB in 30 us are 66.67 GB/s; the group's best call reached 200.
  EXPECT_THAT(insights_table(insights_),
              testing::ContainsRegex("2000000 .* 66\\.67 +66\\.67 +200\\.00 +\\?\n"));
  ASSERT_EQ(insights_.collectives.stragglers.size(), 2U);
  EXPECT_EQ(insights_.collectives.stragglers[0].rank, 1);
  EXPECT_EQ(insights_.collectives.stragglers[0].cost, 30'000);
  EXPECT_EQ(insights_.collectives.stragglers[1].rank, 0);
  EXPECT_EQ(insights_.collectives.stragglers[1].cost, 10'000);
  EXPECT_EQ(insights_.collectives.stragglers[1].waited, 30'000);
}

TEST_F(TheInsights, ARankThatIsMissingIsNamed) {
  RankTrace first(0, 3);
  first.collective("allreduce", 100, 150, 10, "[0, 1, 2]")
      .collective("allreduce", 200, 900, 10, "[0, 1, 2]");
  RankTrace second(1, 3);
  second.collective("allreduce", 100, 150, 10, "[0, 1, 2]");
  load({first, second});
  EXPECT_THAT(insights_.collectives.missing_ranks, ElementsAre(2));
  EXPECT_THAT(insights_.collectives.calls[1].missing, ElementsAre(1, 2));
  const std::string text = insights_table(insights_);
  EXPECT_THAT(text, HasSubstr("no trace of rank 2"));
  EXPECT_THAT(text, HasSubstr("without rank 1, 2"));
}

// What rank 0 sends rank 1 receives: one call under two names. Other names do not belong together.
TEST_F(TheInsights, ASendMeetsItsReceive) {
  RankTrace sender(0);
  RankTrace receiver(1);
  sender.collective("send", 150, 170, 10);
  receiver.collective("recv", 100, 170, 10);
  load({sender, receiver});
  ASSERT_EQ(insights_.collectives.calls.size(), 1U);
  EXPECT_EQ(insights_.collectives.calls[0].name, "sendrecv");
  EXPECT_THAT(insights_.collectives.notes, testing::IsEmpty());
  sender.collective("allreduce", 200, 210, 10);
  receiver.collective("broadcast", 200, 210, 10);
  load({sender, receiver});
  EXPECT_THAT(insights_.collectives.notes, ElementsAre(HasSubstr("1 calls of a group differ")));
}

// Transfers between four ranks of one group, both ways, in another order on each rank: each send
// meets the receive between the same ranks.
TEST_F(TheInsights, TransfersMeetByTheirRanks) {
  RankTrace ranks[] = {RankTrace(0, 3), RankTrace(1, 3), RankTrace(2, 3)};
  ranks[0].transfer("send", 1, 100, 130).transfer("recv", 1, 200, 430);
  ranks[1].transfer("recv", 0, 50, 130).transfer("send", 2, 200, 230);
  ranks[1].transfer("recv", 2, 240, 330).transfer("send", 0, 400, 430);
  ranks[2].transfer("recv", 1, 50, 230).transfer("send", 1, 300, 330);
  load({ranks[0], ranks[1], ranks[2]});
  ASSERT_EQ(insights_.collectives.calls.size(), 4U);
  for (const CollectiveCall& call : insights_.collectives.calls) {
    EXPECT_EQ(call.parts.size(), 2U);
    EXPECT_EQ(call.transfer, 30'000);
    EXPECT_THAT(call.missing, testing::IsEmpty());
  }
  EXPECT_THAT(insights_table(insights_), testing::Not(HasSubstr("lack a traced rank")));
}

// Two calls of 10 us: 2 million operations and a megabyte in each are 0.2 TFLOP/s and 100 GB/s.
TEST_F(TheInsights, KernelsThatSayWhatTheyDoHaveTheirPlaceUnderTheRoofline) {
  const char* const counted = R"(,"kernel_flop":2000000,"kernel_num_gb":0.001)";
  RankTrace rank(0, 1);
  rank.kernel("counted", 1, 10, 20, 0, counted)
      .kernel("counted", 2, 30, 40, 0, counted)
      .kernel("silent", 3, 50, 70);
  load({rank});
  ASSERT_EQ(insights_.kernels.size(), 2U);
  const KernelRow& row = insights_.kernels[insights_.kernels[0].name == "counted" ? 0 : 1];
  EXPECT_DOUBLE_EQ(row.flop, 2e6);
  EXPECT_DOUBLE_EQ(row.bytes, 1e6);
  EXPECT_DOUBLE_EQ(row.rate(row.flop), 200);
  EXPECT_DOUBLE_EQ(row.rate(row.bytes), 100);
  const std::string table = insights_table(insights_);
  const std::string line = table.substr(table.find("FLOP/call"));
  EXPECT_THAT(line, testing::ContainsRegex("counted +2 +2e\\+06 +1e\\+06 +2 +0\\.2 +100\n"));
  EXPECT_THAT(line, testing::Not(HasSubstr("silent")));
}

// A fused instruction multiplies and adds: 2 x 100 + 10. The ranges' own length is no kernel's
// time.
TEST_F(TheInsights, CountersOfCuptisProfilerHaveNoTime) {
  RankTrace rank(0, 1);
  rank.event(
          R"("cat":"cuda_profiler_range","name":"gemm","ts":5,"dur":121431,"args":{"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum":100,"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum":10,"dram__bytes_read.sum":50,"dram__bytes_write.sum":20})")
      .event(
          R"("cat":"cuda_profiler_range","name":"copy","ts":6,"dur":121431,"args":{"dram__bytes_read.sum":5}})")
      .event(
          R"("cat":"cuda_profiler_range","name":"other","ts":7,"dur":121431,"args":{"sm__cycles_active.sum":5}})");
  load({rank});
  const std::string table = insights_table(insights_);
  EXPECT_THAT(table, testing::ContainsRegex("gemm +1 +210 +70 +3 +\\? +\\?\n"));
  EXPECT_THAT(table, testing::ContainsRegex("copy +1 +\\? +5 +\\? +\\? +\\?\n"));
  EXPECT_THAT(table, testing::Not(HasSubstr("other")));
  EXPECT_THAT(table, testing::Not(HasSubstr("kernel or copy")));
}

// A recording's steps belong to no process: a kernel's time is told step by step all the same.
TEST(Kernels, AreToldByStepsThatNoProcessMarked) {
  Trace trace;
  trace.tracks.push_back(
      {.label = "GPU 0", .chrome_tid = "", .process = "", .machine = "", .gpu = true});
  trace.steps = {{1, 0, 100}, {2, 100, 200}};
  const StringId name = trace.strings.intern("kernel");
  for (const auto& [begin, end] : {std::pair<Nanos, Nanos>{10, 20}, {110, 140}}) {
    trace.slices.push_back({.begin = begin, .end = end, .name = name, .kind = Kind::compute});
  }
  const auto kernels = kernels_of(trace);
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0].step_p50, 10);
  EXPECT_EQ(kernels[0].step_p99, 30);
}

// Work of no length ends when it begins. The path is as long as the step all the same: 10 us of
// each kernel, the rest late launches.
TEST_F(TheInsights, TheCriticalPathGoesOnBehindWorkThatTakesNoTime) {
  RankTrace rank(0, 1);
  rank.range("ProfilerStep#1", 0, 100)
      .kernel("first", 1, 10, 20)
      .kernel("nothing", 25, 30, 30)
      .kernel("nothing", 26, 30, 30)
      .kernel("second", 27, 30, 40);
  load({rank});
  ASSERT_EQ(insights_.paths.size(), 1U);
  EXPECT_EQ(insights_.paths[0].length, 100'000);
  std::map<std::string_view, Nanos> shares;
  for (const PathShare& share : insights_.paths[0].by_kernel) shares[share.what] = share.time;
  EXPECT_EQ(shares["first"], 10'000);
  EXPECT_EQ(shares["second"], 10'000);
}

// Back from the last kernel: the collective, then the rank that came last to it, and its late host.
TEST_F(TheInsights, TheCriticalPathGoesThroughTheLateRank) {
  RankTrace first(0);
  first.kernel("quick", 1, 10, 20)
      .collective("allreduce", 20, 110, 1000)
      .kernel("end", 100, 110, 120);
  RankTrace second(1);
  second.kernel("slow", 1, 10, 70)
      .kernel("late", 79, 85, 100)
      .collective("allreduce", 100, 110, 1000);
  load({first, second});
  ASSERT_EQ(insights_.paths.size(), 1U);
  std::map<std::string_view, Nanos> shares;
  for (const PathShare& share : insights_.paths[0].by_kernel) shares[share.what] = share.time;
  EXPECT_EQ(shares["end"], 10'000);
  EXPECT_EQ(shares["slow"], 60'000);
  EXPECT_EQ(shares["late"], 15'000);
  EXPECT_EQ(shares["(host: launched late)"], 10'000);  // 70 until the launch's end at 80
  EXPECT_EQ(shares["(device: held back)"], 5'000);
  EXPECT_FALSE(shares.contains("quick"));
  EXPECT_EQ(insights_.paths[0].length, 110'000);
}

TEST_F(TheInsights, KernelsAreCountedByStep) {
  RankTrace rank(0);
  rank.range("ProfilerStep#1", 0, 10)
      .range("ProfilerStep#2", 10, 20)
      .range("ProfilerStep#3", 20, 30);
  rank.kernel("k", 1, 2, 12)
      .kernel("k", 11, 12, 32)
      .kernel("k", 21, 32, 62)
      .kernel("other", 22, 62, 63);
  load({rank});
  ASSERT_EQ(insights_.kernels.size(), 2U);
  EXPECT_EQ(insights_.kernels[0].name, "k");
  EXPECT_EQ(insights_.kernels[0].count, 3U);
  EXPECT_EQ(insights_.kernels[0].total, 60'000);
  EXPECT_EQ(insights_.kernels[0].longest, 30'000);
  EXPECT_EQ(insights_.kernels[0].step_p50, 20'000);
  EXPECT_EQ(insights_.kernels[0].step_p99, 30'000);
}

// The launch of a kernel on the second stream comes when the first one's queue has been full.
TEST_F(TheInsights, AFullQueueIsACauseOfWaiting) {
  RankTrace rank(0);
  for (int i = 0; i < 1030; ++i) rank.kernel("k", 10 + i, 5000 + i, 5001 + i);
  load({rank});
  ASSERT_EQ(insights_.queues.size(), 1U);
  EXPECT_EQ(insights_.queues[0].deepest, 1030);
  // Full from the 1024th launch at 1033 us until the seventh kernel has begun at 5006 us.
  EXPECT_EQ(measure(insights_.queues[0].full), 3'973'000);
  EXPECT_THAT(insights_table(insights_), HasSubstr("the queue was full for 3.973 ms"));
}

TEST_F(TheInsights, IdleTimeBehindAFullQueueIsTheQueues) {
  RankTrace rank(0);
  rank.kernel("first", 1, 5, 6);
  for (int i = 0; i < 1024; ++i) rank.kernel("k", 10 + i, 3000 + i, 3001 + i);
  rank.kernel("other stream", 2000, 2500, 2501, 0, R"(,"x":0)");
  load({rank});
  // Until 1033 us the host was late; then the queue was full until the launch had ended at 2001 us.
  const auto& idle = analysis_.devices[0].whole.idle_by;
  EXPECT_EQ(idle[static_cast<std::size_t>(IdleCause::queue)], 968'000);
}

TEST_F(TheInsights, MemoryHasItsPeakAndItsCounters) {
  RankTrace rank(3);
  rank.kernel("k", 1, 2, 12)
      .memory(5, 1'000'000, 4'000'000)
      .memory(9, 3'000'000, 4'000'000)
      .memory(10, 2'000'000, 4'000'000);
  load({rank});
  ASSERT_EQ(insights_.memory.size(), 1U);
  EXPECT_EQ(insights_.memory[0].allocated, 3'000'000);
  EXPECT_EQ(insights_.memory[0].at, 9'000);
  const auto counters = memory_counters(trace_);
  ASSERT_EQ(counters.size(), 2U);
  EXPECT_EQ(counters[0].label, "rank 3 · GPU 3 allocated bytes");
  EXPECT_EQ(counters[0].points.size(), 3U);
}

TEST(RealInsights, FirstCollectiveOfNcclData) {
  const auto file = test::shared_folder() / "real/hta_nccl_parser_config_nccl_data.json.gz";
  if (test::shared_folder().empty() || !test::fs::exists(file)) {
    GTEST_SKIP() << "no shared/timeline/real beside the source tree";
  }
  const std::vector<test::fs::path> paths{file};
  const auto trace = load_traces(paths, {});
  ASSERT_TRUE(trace);
  const CollectiveReport report = collectives_of(*trace);
  ASSERT_EQ(report.calls.size(), 21U);
  const auto call = std::find_if(report.calls.begin(), report.calls.end(), [](const auto& one) {
    return one.bytes == 6'637'568 * 4 && one.transfer == 2'636'669;
  });
  ASSERT_NE(call, report.calls.end());
  EXPECT_NEAR(call->bus_bandwidth, 10.07, 0.005);
  EXPECT_EQ(call->group, "default_pg");
  EXPECT_THAT(report.missing_ranks, ElementsAre(1));
}

TEST(RealInsights, DeepSeeksProfileIsDualPipe) {
  const auto file = test::shared_folder() / "real/ds_train.json.gz";
  if (test::shared_folder().empty() || !test::fs::exists(file)) {
    GTEST_SKIP() << "no shared/timeline/real beside the source tree";
  }
  const std::vector<test::fs::path> paths{file};
  const auto trace = load_traces(paths, {});
  ASSERT_TRUE(trace);
  const Analysis analysis = analyse(*trace);
  ASSERT_EQ(analysis.schedules.size(), 1U);
  EXPECT_EQ(analysis.schedules[0].kind, ScheduleKind::dualpipe);
  EXPECT_THAT(analysis.schedules[0].reason, HasSubstr("gradients of weights are separate"));
}

}  // namespace
}  // namespace assay::timeline
