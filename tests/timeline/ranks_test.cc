// A folder of traces, a rank each: who is who, and which step a kernel belongs to.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "rank_trace.h"
#include "support.h"
#include "timeline/analysis/analysis.h"
#include "timeline/analysis/reports.h"
#include "timeline/load.h"
#include "timeline/merge.h"

namespace assay::timeline {
namespace {

using test::RankTrace;
using test::TempFolder;
using test::TheInsights;
using testing::ElementsAre;
using testing::HasSubstr;

// An event of a rank's process, whose GPU is number 0 on every rank.
std::string launch(int correlation, int begin, int end, int pid) {
  return fmt::format(
      R"({{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":{3},"tid":{3},"ts":{1},"dur":{2},"args":{{"correlation":{0}}}}})",
      correlation, begin, end - begin, pid);
}
std::string kernel(int correlation, int begin, int end, const char* name = "gemm",
                   const char* category = "kernel") {
  return fmt::format(
      R"({{"ph":"X","cat":"{4}","name":"{3}","pid":0,"tid":7,"ts":{1},"dur":{2},"args":{{"device":0,"stream":7,"correlation":{0}}}}})",
      correlation, begin, end - begin, name, category);
}
std::string step(int number, int begin, int end, int pid) {
  return fmt::format(
      R"({{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{}","pid":{},"tid":{},"ts":{},"dur":{}}})",
      number, pid, pid, begin, end - begin);
}
std::string trace_of(const std::string& head, std::initializer_list<std::string> events) {
  std::string text = "{\"schemaVersion\":1," + head + "\"traceEvents\":[";
  bool first = true;
  for (const std::string& event : events) {
    text += (first ? "" : ",\n") + event;
    first = false;
  }
  return text + "]}";
}
std::string rank(int number) {
  return fmt::format(R"("distributedInfo":{{"backend":"nccl","rank":{},"world_size":2}},)", number);
}

class Ranks : public testing::Test {
 protected:
  Result<Trace> load(std::initializer_list<const char*> files, std::vector<std::int32_t> ranks = {},
                     bool analysis = false) {
    std::vector<test::fs::path> paths;
    for (const char* file : files) paths.push_back(folder_ / file);
    LoadOptions options;
    options.ranks = std::move(ranks);
    options.import.analysis = analysis;
    return load_traces(paths, options);
  }
  void write(const std::string& file, const std::string& text) {
    test::write(folder_ / file, text);
  }
  TempFolder folder_;
};

// Two ranks that both call their GPU 0: one busy 20 of 100 us, one 30.
TEST_F(Ranks, OfOneDeviceNumberStayTwoDevices) {
  write("a.json", trace_of(rank(1), {launch(5, 0, 1, 71), kernel(5, 0, 10), kernel(6, 90, 100)}));
  write("b.json", trace_of(rank(0), {launch(5, 0, 1, 72), kernel(5, 0, 20), kernel(6, 90, 100)}));
  for (const bool analysis : {false, true}) {
    const auto trace = load({""}, {}, analysis);
    ASSERT_TRUE(trace) << trace.error().message;
    const Analysis result = analyse(*trace);
    ASSERT_EQ(result.devices.size(), 2U);
    EXPECT_EQ(result.devices[0].label, "rank 0 · GPU 0");
    EXPECT_EQ(result.devices[0].whole.compute, 30'000);
    EXPECT_EQ(result.devices[1].label, "rank 1 · GPU 0");
    EXPECT_EQ(result.devices[1].whole.compute, 20'000);
    EXPECT_EQ(result.devices[1].counts.kernels, 2U);
  }
  const auto trace = load({""});
  std::vector<std::string> labels;
  for (const Track& track : trace->tracks) {
    if (track.gpu) labels.push_back(track.label);
  }
  EXPECT_THAT(labels, ElementsAre("rank 1 · GPU 0 · stream 7", "rank 0 · GPU 0 · stream 7"));
}

TEST_F(Ranks, ComeFromNamesWhenTracesDoNotTell) {
  for (const int number : {10, 2}) {
    write(fmt::format("run_rank-{}.json", number), trace_of("", {kernel(1, 0, 10 * number)}));
  }
  write("notes.txt", "no trace");
  const auto trace = load({""});
  ASSERT_TRUE(trace) << trace.error().message;
  const Analysis result = analyse(*trace);
  ASSERT_EQ(result.devices.size(), 2U);
  EXPECT_EQ(result.devices[0].rank, 2);
  EXPECT_EQ(result.devices[0].whole.compute, 20'000);
  EXPECT_EQ(result.devices[1].rank, 10);
  EXPECT_THAT(trace->notes, testing::Contains(HasSubstr("1 files that are not traces")));
}

TEST_F(Ranks, AreAskedForWhenNobodyTells) {
  write("a.json", trace_of("", {kernel(1, 0, 10)}));
  write("b.json", trace_of("", {kernel(1, 0, 20)}));
  const auto asked = load({"a.json", "b.json"});
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().kind, ErrorKind::usage);
  EXPECT_THAT(asked.error().message, HasSubstr("--ranks"));
  const auto told = load({"a.json", "b.json"}, {3, 1});
  ASSERT_TRUE(told);
  EXPECT_EQ(analyse(*told).devices[0].whole.compute, 20'000);
}

TEST_F(Ranks, NamesOfFilesAndFolders) {
  EXPECT_EQ(rank_in_name("x/trace_rank-12.Apr_03.pt.trace.json.gz"), 12);
  EXPECT_EQ(rank_in_name("x/Rank3.json"), 3);
  EXPECT_EQ(rank_in_name("run/rank_7/trace.json"), 7);
  EXPECT_EQ(rank_in_name("run/ranking.json"), kNone);
  EXPECT_EQ(rank_in_name("host_123.pt.trace.json"), kNone);
}

// The GPU runs behind the host: step 1's kernels run while the host is in step 2 already.
TEST_F(Ranks, WorkBelongsToTheStepThatLaunchedIt) {
  write("t.json", trace_of(rank(0), {step(1, 0, 10, 9), step(2, 10, 20, 9), launch(1, 2, 3, 9),
                                     launch(2, 4, 5, 9), launch(3, 12, 13, 9), kernel(1, 5, 15),
                                     kernel(2, 15, 30), kernel(3, 40, 60), kernel(77, 61, 65),
                                     kernel(78, 65, 66, "Memcpy DtoH", "gpu_memcpy")}));
  const auto trace = load({"t.json"}, {}, true);
  ASSERT_TRUE(trace);
  const Analysis result = analyse(*trace);
  ASSERT_EQ(result.steps.size(), 2U);
  const DeviceReport& device = result.devices[0];
  EXPECT_EQ(device.steps[0].compute, 25'000);
  EXPECT_EQ(device.steps[0].span, 30'000);  // from its mark until its work has ended
  EXPECT_EQ(device.steps[0].idle, 5'000);
  EXPECT_EQ(device.steps[1].span, 30'000);
  EXPECT_EQ(device.steps[1].idle, 10'000);
  EXPECT_EQ(device.steps[1].compute, 20'000);
  EXPECT_EQ(device.outside_counts.kernels, 1U);
  EXPECT_EQ(device.outside_counts.copies, 1U);
  EXPECT_EQ(device.outside.compute, 4'000);
  EXPECT_EQ(device.outside.memory, 1'000);
  EXPECT_EQ(device.whole.compute, 49'000);
  EXPECT_EQ(device.whole.span, 61'000);
  EXPECT_THAT(analysis_table(result), HasSubstr("outside of steps, 1 kernels and 1 copies"));
}

// A gap is the host's until the work behind it was launched, then the device's.
TEST_F(Ranks, LateLaunchesAreTheHosts) {
  write("t.json", trace_of(rank(0), {launch(1, 0, 1, 9), launch(2, 15, 17, 9), launch(3, 18, 19, 9),
                                     kernel(1, 2, 10), kernel(2, 20, 30), kernel(3, 34, 40)}));
  const auto trace = load({"t.json"}, {}, true);
  ASSERT_TRUE(trace);
  const TimeShare whole = analyse(*trace).devices[0].whole;
  EXPECT_EQ(whole.idle, 14'000);
  EXPECT_THAT(whole.idle_by, ElementsAre(0, 0, 0, 7'000, 7'000, 0));
}

// Importing a merge restores ranks, launches, args, arrows and nanoseconds.
TEST_F(Ranks, SurviveAMerge) {
  const std::string arrow =
      R"({"ph":"s","id":5,"pid":71,"tid":71,"ts":0,"cat":"ac2g","name":"ac2g"},)"
      R"({"ph":"f","id":5,"pid":0,"tid":7,"ts":2.5,"cat":"ac2g","name":"ac2g","bp":"e"})";
  const std::string nanos =
      R"({"ph":"X","cat":"kernel","name":"n","pid":0,"tid":7,"ts":1795230248413317.123,"dur":2.345,"args":{"device":0,"stream":7,"grid":[1,2,3]}})";
  write("a.json", trace_of(rank(1), {step(3, 0, 50, 71), launch(5, 0, 1, 71), kernel(5, 2, 10),
                                     kernel(6, 5, 20, "ncclDevKernel_Broadcast"), arrow, nanos}));
  write("b.json", trace_of(rank(0), {step(3, 0, 50, 72), launch(5, 0, 1, 72), kernel(5, 0, 20)}));
  auto trace = load({"a.json", "b.json"});
  ASSERT_TRUE(trace);
  const TempFolder out;
  ASSERT_TRUE(write_trace(*trace, OutputPaths::in(out.path())));
  for (const char* file : {"pipeline_profile.json", "pipeline_profile_perfetto.json"}) {
    const std::vector<test::fs::path> paths{out / file};
    const auto back = load_traces(paths, {});
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->files[0].format, "merged trace");
    EXPECT_EQ(analysis_json(analyse(*back)), analysis_json(analyse(*trace))) << file;
    EXPECT_EQ(back->flows.size(), 2U);
    const std::string text = read_file(out / file).value();
    EXPECT_THAT(text, HasSubstr("\"grid\":[1,2,3]"));
    EXPECT_THAT(text, HasSubstr("\"ts\":1795230248413317.123,\"dur\":2.345"));
  }
}

// Two ranks on CPUs: rank 0 computes 60 us and rank 1 40 us, then gloo reduces 1,000 floats until
// 90. Nested operators and the call that enqueues the collective are no work of their own.
TEST_F(TheInsights, GlooRunsHaveStepsCollectivesAndStragglers) {
  std::vector<RankTrace> ranks{RankTrace(0), RankTrace(1)};
  for (int rank = 0; rank < 2; ++rank) {
    const int took = rank == 0 ? 60 : 40;
    ranks[static_cast<std::size_t>(rank)]
        .range("ProfilerStep#7", 0, 100)
        .event(fmt::format(R"("cat":"cpu_op","name":"aten::matmul","ts":10,"dur":{})", took))
        .event(R"("cat":"cpu_op","name":"aten::mm","ts":15,"dur":20)")
        .event(
            fmt::format(R"("cat":"cpu_op","name":"c10d::allreduce_","ts":{},"dur":2)", 10 + took))
        .event(fmt::format(
            R"("cat":"user_annotation","name":"gloo:all_reduce","ts":{},"dur":{},"args":{{"Input Dims":[[1000]],"Input type":["float"]}})",
            10 + took, 80 - took));
  }
  load({ranks[0], ranks[1]});
  ASSERT_EQ(analysis_.devices.size(), 2U);
  EXPECT_EQ(analysis_.devices[0].label, "rank 0 · CPU");
  ASSERT_EQ(analysis_.steps.size(), 1U);
  EXPECT_EQ(analysis_.steps[0].number, 7);
  const TimeShare& step = analysis_.devices[1].steps[0];
  EXPECT_EQ(step.span, 100'000);
  EXPECT_EQ(step.compute, 40'000);
  EXPECT_EQ(step.communication, 40'000);
  EXPECT_EQ(step.idle, 20'000);
  ASSERT_EQ(insights_.collectives.calls.size(), 1U);
  const CollectiveCall& call = insights_.collectives.calls[0];
  EXPECT_EQ(call.name, "allreduce");
  EXPECT_EQ(call.bytes, 4000);
  EXPECT_EQ(call.transfer, 20'000);
  EXPECT_EQ(call.last, 0);
  ASSERT_FALSE(insights_.collectives.stragglers.empty());
  EXPECT_EQ(insights_.collectives.stragglers[0].rank, 0);
  EXPECT_EQ(insights_.collectives.stragglers[0].cost, 20'000);
}

}  // namespace
}  // namespace assay::timeline
