// Who and what makes steps longer: the inputs of shared/timeline/failing2 with their right answers
// (its README), and made traces of the same kinds, worked by hand.

#include <gmock/gmock.h>

#include "rank_trace.h"
#include "support.h"
#include "timeline/analysis/compare.h"
#include "timeline/analysis/hang.h"
#include "timeline/analysis/reports.h"
#include "timeline/merge.h"

namespace assay::timeline {
namespace {

using test::RankTrace;
using test::TheInsights;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr Nanos kUs = 1000;
constexpr double kMs = 1e6;

class KnownCauses : public TheInsights {
 protected:
  void SetUp() override {
    if (test::shared_folder().empty() || !test::fs::exists(test::shared_folder() / "failing2")) {
      GTEST_SKIP() << "no shared/timeline/failing2 beside the source tree";
    }
  }
  void take(const std::string& name, const ClockOptions& clocks = {}) {
    const test::fs::path path = test::shared_folder() / "failing2" / name;
    LoadOptions options;
    options.import.analysis = true;
    options.clocks = clocks;
    auto trace = name.find("_log_") != std::string::npos
                     ? load_job_logs({.log_dir = path, .devices = {}}, {})
                     : load_traces(std::vector{path}, options);
    ASSERT_TRUE(trace) << trace.error().message;
    use(std::move(*trace));
  }
  std::string answer() const { return answer_table(analysis_, insights_); }
  std::string text() const { return analysis_table(analysis_) + insights_table(insights_); }
  // The only culprit, or one without a name.
  Culprit only() const {
    EXPECT_EQ(insights_.culprits.size(), 1U) << answer();
    return insights_.culprits.size() == 1 ? insights_.culprits[0] : Culprit();
  }
};

TEST_F(KnownCauses, NobodyInABalancedRun) {
  take("00_control");
  EXPECT_EQ(answer(), "no rank, host, stage, link or step stands out\n\n");
  EXPECT_THAT(text(), Not(HasSubstr("critical stage")));
}

TEST_F(KnownCauses, GainsAreOfTheStepsWithTheCause) {
  take("01_slow_since_later");
  const Culprit one = only();
  EXPECT_EQ(one.name, "rank 2");
  EXPECT_EQ(one.when, "since step 15");
  EXPECT_THAT(one.cause, HasSubstr("slow GPU: the same kernels take 1.40 times as long"));
  EXPECT_NEAR(static_cast<double>(one.without), 9.44 * kMs, 0.05 * kMs);
}

TEST_F(KnownCauses, EqualStragglersShareALine) {
  take("02_two_slow");
  const Culprit one = only();
  EXPECT_EQ(one.name, "ranks 1, 4");
  EXPECT_NEAR(static_cast<double>(one.without), 9.44 * kMs, 0.05 * kMs);
  EXPECT_NEAR(static_cast<double>(one.without_one), 11.48 * kMs, 0.05 * kMs);
}

TEST_F(KnownCauses, TransfersOfABalancedPipelineBlameNobody) {
  take("03_p2p_group_of_4");
  ASSERT_EQ(insights_.collectives.calls.size(), 72U);
  for (const CollectiveCall& call : insights_.collectives.calls) {
    EXPECT_NEAR(static_cast<double>(call.transfer), 0.3 * kMs, 0.015 * kMs);
    EXPECT_EQ(call.parts.size(), 2U);
  }
  EXPECT_THAT(insights_.culprits, IsEmpty()) << answer();
  EXPECT_EQ(insights_.replay.reason, "");
  EXPECT_NEAR(static_cast<double>(insights_.replay.recorded), 88.6 * kMs, 0.9 * kMs);
  EXPECT_THAT(text(), Not(HasSubstr("lack a traced rank")));
}

TEST_F(KnownCauses, ASlowLinkOfAPipeline) {
  take("04_slow_p2p_link_1_2");
  const Culprit one = only();
  EXPECT_EQ(one.kind, "link");
  EXPECT_THAT(one.ranks, ElementsAre(1, 2));
  EXPECT_NEAR(static_cast<double>(one.without), 113.8 * kMs, 1.5 * kMs);
}

TEST_F(KnownCauses, ASlowStageOfALog) {
  take("05_log_slow_stage2");
  const Culprit one = only();
  EXPECT_EQ(one.name, "stage 2");
  EXPECT_NEAR(static_cast<double>(one.without), 137.7 * kMs, 1 * kMs);
  EXPECT_NEAR(static_cast<double>(insights_.replay.prompt), 160.9 * kMs, 1 * kMs);
  EXPECT_THAT(text(), HasSubstr("critical path through GPU:2"));
}

TEST_F(KnownCauses, APauseBetweenSteps) {
  take("06_log_pause_between_steps");
  EXPECT_THAT(insights_.culprits, IsEmpty()) << answer();
  EXPECT_THAT(answer(),
              testing::ContainsRegex("pause: nothing runs for 4[0-9][0-9]\\..* ms after"));
  EXPECT_THAT(answer(), Not(HasSubstr("the host was in step")));
  EXPECT_NEAR(mean_step(analysis_), 137.7 + 400.0 / 5, 1);
}

TEST_F(KnownCauses, OneStepWithACollection) {
  take("07_gc_one_step");
  const Culprit one = only();
  EXPECT_EQ(one.name, "rank 2");
  EXPECT_EQ(one.when, "step 14");
  EXPECT_THAT(one.cause, AllOf(HasSubstr("host"), HasSubstr("gc.collect")));
  EXPECT_NEAR(static_cast<double>(one.excess), 80 * kMs, 0.5 * kMs);
  EXPECT_THAT(text(), HasSubstr("(median 9.4"));
}

TEST_F(KnownCauses, MoreWorkIsNoSlowGpu) {
  take("08_longer_sequences");
  EXPECT_EQ(only().name, "rank 2");
  EXPECT_THAT(only().cause, AllOf(HasSubstr("more work than its peers"), HasSubstr("1.25 times"),
                                  Not(HasSubstr("slow"))));
}

TEST_F(KnownCauses, ARankThatNeverCalledItsGroup) {
  take("09_fr_group_without_entries");
  EXPECT_THAT(answer(),
              testing::StartsWith("nccl:reduce_scatter number 1 of dp does not end; rank 1 "
                                  "has not called it; rank 0 waits in it\n"));
  EXPECT_THAT(answer(), HasSubstr("a.py:2"));
}

TEST_F(KnownCauses, NamesWithTotals) {
  take("10_names_slash");
  const Schedule& schedule = analysis_.schedules.at(0);
  EXPECT_EQ(schedule.kind, ScheduleKind::one_f_one_b);
  EXPECT_EQ(schedule.stages, 4U);
  EXPECT_EQ(schedule.micro_batches, 8U);
  EXPECT_NEAR(schedule.ideal_bubble, 0.2727, 0.001);
}

TEST_F(KnownCauses, APipelineOverClocks) {
  take("11_pipeline_4_hosts_skew");
  EXPECT_EQ(analysis_.schedules.at(0).kind, ScheduleKind::one_f_one_b);
  EXPECT_NEAR(mean_step(analysis_), 139.1, 0.5);
  take("11_pipeline_4_hosts_skew", {.manifest = {}, .probes = {}, .pairs = true});
  EXPECT_EQ(analysis_.schedules.at(0).kind, ScheduleKind::one_f_one_b);
  EXPECT_NEAR(mean_step(analysis_), 139.1, 0.5);
}

TEST_F(KnownCauses, AStragglerThatIsOver) {
  take("12_slow_first_5_of_9");
  EXPECT_EQ(only().name, "rank 2");
  EXPECT_EQ(only().when, "steps 10 to 14");
  EXPECT_THAT(only().cause, HasSubstr("slow GPU"));
}

TEST_F(KnownCauses, SlowCopies) {
  take("13_slow_h2d");
  EXPECT_EQ(only().name, "rank 1");
  EXPECT_THAT(only().cause, HasSubstr("copies"));
  EXPECT_NEAR(static_cast<double>(only().excess), 5.8 * kMs, 0.05 * kMs);
}

TEST_F(KnownCauses, ACulpritThatAComparisonFinds) {
  take("00_control");
  const Trace trace = std::move(trace_);
  const Analysis before = analysis_;
  const Insights insights = insights_;
  take("14_compare_after");
  const std::string told =
      comparison_text(compare({trace, before, insights}, {trace_, analysis_, insights_}), "table");
  EXPECT_LT(told.find("new: slow: rank 3"), told.find("communication, exposed"));
  EXPECT_THAT(told, testing::ContainsRegex("1\\.7[12][0-9] ms a step more than its peers"));
  EXPECT_THAT(told, HasSubstr("transfers take as long as before"));
}

// The same rank is slow in both runs, and takes much longer in one.
TEST_F(TheInsights, ACulpritThatIsWorseIsTold) {
  const auto run = [&](int extra) {
    RankTrace one(0);
    RankTrace other(1);
    for (int step = 0; step < 6; ++step) {
      const int at = 2000 * step;
      for (auto& [rank, took] : {std::pair(&one, 1000), {&other, 1000 + extra}}) {
        rank->range(fmt::format("ProfilerStep#{}", step), at, at + 2000);
        rank->kernel("gemm", at + 1, at + 10, at + 10 + took);
        rank->collective("allreduce", at + 10 + took, at + 1900, 1000);
      }
    }
    load({one, other});
  };
  run(200);
  const Trace trace = std::move(trace_);
  const Analysis before = analysis_;
  const Insights insights = insights_;
  run(500);
  const auto told =
      comparison_text(compare({trace, before, insights}, {trace_, analysis_, insights_}), "table");
  EXPECT_THAT(told, HasSubstr("worse: slow: rank 1"));
  EXPECT_THAT(told, HasSubstr("(in the other run: 0.200 ms, since step 0)"));
  EXPECT_THAT(told, Not(HasSubstr("before: schedule")));
}

// Stages on two machines whose clocks nothing relates: what a stage waits for is not known, so its
// idle time is no late host.
TEST_F(TheInsights, WithoutCommonClocksAWaitingStageIsNoSlowHost) {
  struct Job {
    const char* name;
    int begin, end;
  };
  RankTrace first(0, 2, "a");
  RankTrace last(1, 2, "b");
  for (int step = 0; step < 3; ++step) {
    const int at = 9210 * step;
    const auto run = [&](RankTrace& rank, int clock, std::initializer_list<Job> jobs) {
      rank.range(fmt::format("ProfilerStep#{}", step), clock, clock + 9210);
      for (const auto& [name, begin, end] : jobs) {
        rank.range(name, clock + begin - 5, clock + end);
        rank.kernel("gemm", clock + begin - 3, clock + begin, clock + end);
      }
    };
    run(first, at,
        {{"forward 0/2", 10, 1010},
         {"forward 1/2", 1010, 2010},
         {"backward 0/2", 4110, 6110},
         {"backward 1/2", 7110, 9110}});
    run(last, at + 30'000,
        {{"forward 0/2", 1060, 2060},
         {"backward 0/2", 2060, 4060},
         {"forward 1/2", 4060, 5060},
         {"backward 1/2", 5060, 7060}});
  }
  load({first, last});
  EXPECT_THAT(insights_.culprits, IsEmpty()) << answer_table(analysis_, insights_);
}

// Somebody put the events of a rank into its file a second time.
TEST_F(TheInsights, RepeatedWorkCountsOnce) {
  RankTrace rank(0, 1);
  rank.kernel("gemm", 1, 10, 110).kernel("norm", 2, 110, 130);
  const std::string text = rank.text();
  const std::size_t events = text.find('[') + 1;
  const std::string twice =
      text.substr(0, text.size() - 2) + "," + text.substr(events, text.size() - 2 - events) + "]}";
  const std::vector<test::fs::path> paths{test::write(folder_ / "twice.json", twice)};
  auto trace = load_traces(paths, {});
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_THAT(trace->files[0].notes,
              testing::Contains(HasSubstr("2 kernels and copies stand twice")));
  use(std::move(*trace));
  EXPECT_EQ(analysis_.devices[0].whole.compute, 120'000);
  EXPECT_EQ(insights_.quality.lost_launches, 0U);
}

TEST_F(KnownCauses, CustomAllReducesMeet) {
  take("15_custom_allreduce");
  EXPECT_NEAR(static_cast<double>(insights_.replay.ideal), 3.15 * kMs, 0.05 * kMs);
  for (const ReplayShare& share : insights_.replay.types) {
    EXPECT_LE(share.without, insights_.replay.recorded) << share.name;
  }
}

// Data-parallel ranks: a kernel of `took` us by rank and step, an all-reduce until all are there,
// 30 us of transfer.
class Stragglers : public TheInsights {
 protected:
  template <typename Took>
  void run(int ranks, int steps, Took took, const std::string& args = "") {
    std::vector<RankTrace> traces;
    for (int rank = 0; rank < ranks; ++rank) traces.emplace_back(rank, ranks);
    std::string members;
    for (int rank = 0; rank < ranks; ++rank) members += fmt::format("{}{}", rank ? ", " : "", rank);
    int mark = 0;
    for (int step = 0; step < steps; ++step) {
      int last = 0;
      for (int rank = 0; rank < ranks; ++rank) last = std::max(last, took(rank, step));
      for (int rank = 0; rank < ranks; ++rank) {
        const int end = mark + 10 + took(rank, step);
        traces[static_cast<std::size_t>(rank)]
            .range(fmt::format("ProfilerStep#{}", step), mark, mark + last + 40)
            .kernel("gemm", mark + 1, mark + 10, end, 0, args)
            .collective("allreduce", end, mark + last + 40, 1000, "[" + members + "]");
      }
      mark += last + 40;
    }
    std::vector<test::fs::path> paths;
    for (int rank = 0; rank < ranks; ++rank) {
      paths.push_back(test::write(folder_ / fmt::format("r{}.json", rank),
                                  traces[static_cast<std::size_t>(rank)].text()));
    }
    LoadOptions options;
    options.import.analysis = true;
    auto trace = load_traces(paths, options);
    ASSERT_TRUE(trace) << trace.error().message;
    use(std::move(*trace));
  }
};

TEST_F(Stragglers, EveryFourthStep) {
  run(4, 12, [](int rank, int step) { return rank == 1 && step % 4 == 2 ? 300 : 100; });
  ASSERT_EQ(insights_.culprits.size(), 1U);
  EXPECT_EQ(insights_.culprits[0].name, "rank 1");
  EXPECT_EQ(insights_.culprits[0].when, "every 4 steps from step 2");
  EXPECT_EQ(insights_.culprits[0].excess, 200 * kUs);
  EXPECT_EQ(insights_.culprits[0].without, 140 * kUs);
}

TEST_F(Stragglers, ThatMoveAreInTurn) {
  run(4, 8, [](int rank, int step) { return rank == step % 4 ? 200 : 100; });
  ASSERT_EQ(insights_.culprits.size(), 1U) << answer_table(analysis_, insights_);
  EXPECT_EQ(insights_.culprits[0].name, "ranks 0, 1, 2, 3 in turn");
  EXPECT_EQ(insights_.culprits[0].without, 140 * kUs);
}

TEST_F(Stragglers, TheFirstStepOfAllRanks) {
  run(4, 8, [](int, int step) { return step == 0 ? 5000 : 100; });
  ASSERT_EQ(insights_.culprits.size(), 1U);
  EXPECT_EQ(insights_.culprits[0].kind, "step");
  EXPECT_EQ(insights_.culprits[0].when, "step 0, the first");
  EXPECT_EQ(insights_.culprits[0].cause, "compute");
}

TEST_F(Stragglers, ASmallDifferenceIsNone) {
  run(8, 10, [](int rank, int step) { return 1000 + (rank * 7 + step * 13) % 20; });
  EXPECT_THAT(insights_.culprits, IsEmpty());
  EXPECT_FALSE(analysis_.critical_stage);
}

// The name of the file has the host.
// A GPU that is never idle and does the same in each step. Its host runs three steps ahead, and was
// late once.
RankTrace ahead(int early) {
  RankTrace rank(0, 1);
  const std::vector<int> marks{1000, 2000, 3700, 4000, 5000, 6000};
  for (int i = 0; i < 3; ++i) rank.kernel("gemm", 100 + i, 110 + 1000 * i, 1110 + 1000 * i);
  for (std::size_t i = 0; i + 1 < marks.size(); ++i) {
    rank.range(fmt::format("ProfilerStep#{}", i), marks[i], marks[i + 1]);
    rank.kernel("prefetch", marks[i] + 2, marks[i] + 5, marks[i] + 5 + early, 0, "", 8);
    const int begin = 3110 + 1000 * static_cast<int>(i);
    rank.kernel("gemm", marks[i] + 10, begin, begin + 1000);
  }
  return rank;
}

TEST_F(TheInsights, EarlierWorkIsNoPartOfTheFirstStep) {
  load({ahead(3)});
  EXPECT_EQ(analysis_.lengths, (std::vector<Nanos>(5, 1'000'000)));
  EXPECT_THAT(insights_.culprits, IsEmpty());
}

TEST_F(TheInsights, MarksOfAHostThatRunsAheadAreNoSlowStep) {
  load({ahead(200)});
  EXPECT_THAT(insights_.culprits, IsEmpty()) << answer_table(analysis_, insights_);
}

TEST_F(TheInsights, CapturedLaunchesAreNotLost) {
  RankTrace rank(0, 1);
  const auto call = [&](const char* name, int begin) {
    rank.event(fmt::format(
        R"("cat":"cuda_runtime","name":"{}","ts":{},"dur":1,"args":{{"correlation":{}}})", name,
        begin, 1000 + begin));
  };
  rank.kernel("gemm", 1, 2, 5);
  call("cudaStreamBeginCapture", 10);
  call("cudaLaunchKernel", 12);
  call("cudaLaunchKernel", 14);
  call("cudaStreamEndCapture", 16);
  call("cudaLaunchKernel", 20);
  load({rank});
  EXPECT_EQ(insights_.quality.lost_launches, 1U);
}

TEST_F(TheInsights, AFileNamesItsHost) {
  const RankTrace rank(0, 1, "");
  const auto path = test::write(folder_ / "gpu-7.local_4711.1700000000.pt.trace.json", rank.text());
  const auto trace = load_traces(std::vector{path}, {});
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->sources.at(0).host, "gpu-7.local");
}

// Rank 1 saves before its step 1 ends, while rank 0 has begun the next one.
TEST_F(TheInsights, WhatTheHostDidAtTheEndOfAStep) {
  std::array<RankTrace, 2> ranks{RankTrace(0), RankTrace(1)};
  std::array<int, 2> marks{};
  for (int step = 0; step < 6; ++step) {
    const int late = std::max(marks[0], marks[1]);
    for (const std::size_t rank : {0U, 1U}) {
      RankTrace& trace = ranks.at(rank);
      const int mark = marks.at(rank);
      const int saves = rank == 1 && step == 1 ? 3000 : 0;
      trace.range("enumerate(DataLoader)#next", mark, mark + 20)
          .kernel("gemm", mark + 21, mark + 22, mark + 100)
          .collective("allreduce", mark + 100, late + 140, 1000)
          .kernel("adam", mark + 101, late + 140, late + 160)
          .range(fmt::format("ProfilerStep#{}", step), mark, late + 170 + saves);
      if (saves > 0) trace.range("torch.save", late + 165, late + 160 + saves);
      marks.at(rank) = late + 175 + saves;
    }
  }
  load({ranks[0], ranks[1]});
  ASSERT_FALSE(insights_.culprits.empty());
  EXPECT_THAT(insights_.culprits[0].cause, HasSubstr("torch.save"));
}

}  // namespace
}  // namespace assay::timeline
