// Pipelines whose jobs, transfers and waits are known: small traces and logs, worked by hand.

#include <gmock/gmock.h>

#include "rank_trace.h"
#include "support.h"
#include "timeline/analysis/replay_operations.h"
#include "timeline/analysis/reports.h"
#include "timeline/merge.h"

namespace assay::timeline {
namespace {

using test::RankTrace;
using test::TheInsights;

constexpr Nanos kUs = 1000;

class ThePipelines : public TheInsights {
 protected:
  // The first slice of a name on tracks of jobs, or of work.
  std::uint32_t find(std::string_view name, bool jobs, std::size_t place = 0) const {
    for (std::uint32_t i = 0; i < trace_.slices.size(); ++i) {
      const Slice& slice = trace_.slices[i];
      const Track& track = trace_.tracks[slice.track];
      if (!track.gpu || track.jobs != jobs || trace_.strings.text(slice.name) != name) continue;
      if (place-- == 0) return i;
    }
    return kNoIndex;
  }
};

// Kineto names ranks of the job, other writers positions in the group: a number that is no member
// of its group tells which.
TEST_F(ThePipelines, APeerIsARankOrAPosition) {
  const char* const odd = "[1, 3, 5, 7]";
  load({RankTrace(1).transfer("send", 3, 100, 130, -1, odd),
        RankTrace(3).transfer("recv", 1, 50, 130, -1, odd)});
  ASSERT_EQ(insights_.collectives.calls.size(), 1U);
  EXPECT_EQ(insights_.collectives.calls[0].transfer, 30 * kUs);
  const char* const high = "[4, 5, 6, 7]";
  load({RankTrace(4).transfer("send", 1, 100, 130, -1, high),
        RankTrace(5).transfer("recv", 0, 50, 130, -1, high)});
  EXPECT_EQ(insights_.collectives.calls.size(), 1U);
}

// A range that also receives its input: the job is the work, not the wait for the input.
TEST_F(ThePipelines, AJobIsItsWork) {
  load({RankTrace(0, 1)
            .range("ProfilerStep#1", 0, 400)
            .range("F0", 10, 60)
            .transfer("recv", 1, 20, 150, 15)
            .kernel("gemm", 30, 151, 250)
            .transfer("send", 1, 250, 300, 40)});
  const std::uint32_t job = find("F0", true);
  ASSERT_NE(job, kNoIndex);
  EXPECT_EQ(trace_.slices[job].end - trace_.slices[job].begin, 99 * kUs);
}

// The last stage begins its next step while the first one still runs its last backward.
TEST_F(ThePipelines, AStepHasTheJobsThatItLaunched) {
  RankTrace first(0);
  RankTrace last(1);
  for (int step = 0; step < 3; ++step) {
    const int at = 1000 * step;
    first.range(fmt::format("ProfilerStep#{}", step), at, at + 920);
    last.range(fmt::format("ProfilerStep#{}", step), step == 0 ? 0 : at - 308, at + 690);
    const auto job = [&](RankTrace& rank, const std::string& name, int begin, int end) {
      rank.range(name, at + begin, at + begin + 5)
          .kernel("gemm", at + begin, at + begin + 1, at + end);
    };
    job(first, "F0", 1, 100);
    job(first, "F1", 101, 200);
    job(last, "F0", 110, 210);
    job(last, "F1", 211, 310);
    job(last, "B0", 311, 500);
    job(first, "B0", 505, 700);
    job(last, "B1", 501, 690);
    job(first, "B1", 705, 905);
  }
  load({first, last});
  ASSERT_EQ(analysis_.schedules.size(), 3U);
  for (const Schedule& schedule : analysis_.schedules) {
    EXPECT_EQ(schedule.kind, ScheduleKind::gpipe) << schedule.reason;
  }
}

// The second receive begins when the first one has ended. That a kernel had ended before is chance.
TEST_F(ThePipelines, ChanceIsNoDependency) {
  load({RankTrace(0, 1)
            .kernel("first", 1, 20, 120)
            .transfer("recv", 1, 4, 299, 3)
            .transfer("recv", 1, 300, 500, 5)
            .kernel("second", 4, 300, 400)
            .kernel("third", 6, 501, 600)});
  std::vector<Operation> operations;
  for (std::uint32_t i = 0; i < trace_.slices.size(); ++i) {
    if (!trace_.tracks[trace_.slices[i].track].gpu) continue;
    operations.push_back({.slice = i});
  }
  const auto before = find_waits(trace_, 1, {}, operations);
  const auto follows = [&](std::uint32_t slice) {
    const auto own = std::ranges::find(operations, slice, &Operation::slice);
    std::set<std::uint32_t> slices;
    for (std::uint32_t i = 0; i < own->count_before; ++i) {
      slices.insert(operations[before[own->first_before + i]].slice);
    }
    return slices;
  };
  const std::string receive = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
  const std::uint32_t one = find(receive, false);
  EXPECT_THAT(follows(find(receive, false, 1)), testing::ElementsAre(one));
  EXPECT_THAT(follows(find("second", false)),
              testing::UnorderedElementsAre(one, find("first", false)));
}

// Two stages, two micro batches; stage 0 takes twice as long and both optimizers wait for it: 40 +
// 10 + 20 + 30 ms in stage 1's first step, and 20 ms less without what stage 0 takes longer.
TEST_F(ThePipelines, OptimizersOfLogsWaitForAllStages) {
  std::array<std::string, 2> logs;
  const auto job = [&](std::size_t stage, const char* type, int micro, int begin, int end) {
    logs[stage] +=
        test::job_line(0, type, micro, fmt::format("{}.0", begin), fmt::format("{}.0", end));
  };
  for (int step = 0; step < 4; ++step) {
    const int at = 1000 + 200 * step;
    job(0, "forward", 0, at, at + 20);
    job(0, "forward", 1, at + 20, at + 40);
    job(1, "forward", 0, at + 20, at + 30);
    job(1, "forward", 1, at + 40, at + 50);
    job(1, "backward", 0, at + 50, at + 70);
    job(1, "backward", 1, at + 70, at + 90);
    job(0, "backward", 0, at + 70, at + 110);
    job(0, "backward", 1, at + 110, at + 150);
    for (const std::size_t stage : {0U, 1U}) job(stage, "optimizer", 0, at + 150, at + 195);
  }
  for (const std::size_t stage : {0U, 1U}) {
    test::write(folder_ / fmt::format("workerlog.{}", stage), logs[stage]);
  }
  auto trace = load_job_logs({.log_dir = folder_.path(), .devices = {}}, {});
  ASSERT_TRUE(trace) << trace.error().message;
  use(std::move(*trace));
  ASSERT_EQ(insights_.replay.reason, "") << schedule_line(analysis_);
  const auto share = std::ranges::find(insights_.replay.stages, "stage 0", &ReplayShare::name);
  ASSERT_NE(share, insights_.replay.stages.end());
  EXPECT_NEAR(static_cast<double>(insights_.replay.recorded - share->without) / 1e6, 60, 1);
}

}  // namespace
}  // namespace assay::timeline
