// Calls as NCCL's profiler plug-ins write them. The examples, with bandwidths that the plug-in
// computed, are those of its README.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "support.h"
#include "timeline/analysis/collectives.h"
#include "timeline/load.h"

namespace assay::timeline {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class Nccl : public testing::Test {
 protected:
  CollectiveReport report(const std::vector<std::pair<std::string, std::string>>& files) {
    std::vector<test::fs::path> paths;
    for (const auto& [name, text] : files) paths.push_back(test::write(folder_ / name, text));
    auto trace = load_traces(paths, {});
    EXPECT_TRUE(trace) << trace.error().message;
    if (!trace) return {};
    trace_ = std::move(*trace);
    return collectives_of(trace_);
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> all;
    for (const FileReport& file : trace_.files) {
      all.insert(all.end(), file.notes.begin(), file.notes.end());
    }
    return all;
  }

  test::TempFolder folder_;
  Trace trace_;
};

std::string inspected(int rank, int ranks, const std::string& function, int number,
                      std::int64_t bytes, int microseconds, const std::string& more = "") {
  return fmt::format(
      R"({{"header":{{"id":"0x7f8c496ae9f661","rank":{},"n_ranks":{},"nnodes":1}},"metadata":)"
      R"({{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":)"
      R"("profiler_plugin","dump_timestamp_us":1748030377748202,"hostname":"node","pid":{}}},)"
      R"("coll_perf":{{"coll":"{}","coll_sn":{},"coll_msg_size_bytes":{},)"
      R"("coll_exec_time_us":{}{}}}}})"
      "\n",
      rank, ranks, 1000 + rank, function, number, bytes, microseconds, more);
}

TEST_F(Nccl, InspectorsBandwidthsAreTold) {
  const auto calls =
      report({{"node-pid1002.log", inspected(2, 8, "AllReduce", 1407, 17179869184, 61974)},
              {"node-pid1004.log", inspected(4, 8, "ReduceScatter", 1231, 2147483648, 41057)}})
          .calls;
  ASSERT_EQ(calls.size(), 2U);
  const bool first = calls[0].name == "allreduce";
  const CollectiveCall& all = calls[first ? 0 : 1];
  const CollectiveCall& scatter = calls[first ? 1 : 0];
  EXPECT_NEAR(all.algorithm_bandwidth, 277.210914, 1e-5);
  EXPECT_NEAR(all.bus_bandwidth, 485.119099, 1e-5);
  EXPECT_EQ(all.parts.front().rank, 2);
  EXPECT_NEAR(scatter.algorithm_bandwidth, 418.439467, 1e-5);
  EXPECT_NEAR(scatter.bus_bandwidth, 366.134533, 1e-5);
  EXPECT_THAT(notes(), Contains(HasSubstr("NCCL_INSPECTOR_DUMP_VERBOSE=1")));
}

// Durations alone: the shortest part did not wait.
TEST_F(Nccl, InspectorsCallsAreMatchedByNumberAndGapsAreTold) {
  const auto found = report({{"node-pid1000.log", inspected(0, 2, "AllReduce", 5, 4096, 100) +
                                                      inspected(0, 2, "AllReduce", 6, 4096, 100) +
                                                      inspected(0, 2, "AllReduce", 8, 4096, 500)},
                             {"node-pid1001.log", inspected(1, 2, "AllReduce", 6, 4096, 300) +
                                                      inspected(1, 2, "AllReduce", 8, 4096, 200)}});
  ASSERT_EQ(found.calls.size(), 3U);
  for (const CollectiveCall& call : found.calls) {
    if (call.sequence == 5) {
      EXPECT_THAT(call.missing, ElementsAre(1));
    } else {
      EXPECT_EQ(call.transfer, call.sequence == 6 ? 100'000 : 200'000);
      EXPECT_EQ(call.last, kNone);
    }
  }
  EXPECT_THAT(notes(), Contains(HasSubstr("1 calls of AllReduce on communicator 0x7f8c496ae9f661 "
                                          "are missing, the first is number 7")));
}

// The verbose output has times; ranks of one host share a clock.
TEST_F(Nccl, InspectorsTimesTellWhoIsLate) {
  const auto verbose = [](std::int64_t begin, std::int64_t end) {
    return fmt::format(R"(,"event_trace_ts":{{"coll_start_ts":{0},"coll_stop_ts":{0},)"
                       R"("kernel_events":[{{"channel_id":0,"kernel_start_ts":{0},)"
                       R"("kernel_stop_ts":{1}}}]}})",
                       begin, end);
  };
  const std::int64_t time = 1752867229235181;
  const auto found = report(
      {{"node-pid1000.log", inspected(0, 2, "AllReduce", 5, 4096, 100, verbose(time, time + 100))},
       {"node-pid1001.log",
        inspected(1, 2, "AllReduce", 5, 4096, 40, verbose(time + 60, time + 100))}});
  ASSERT_EQ(found.calls.size(), 1U);
  EXPECT_EQ(found.calls[0].last, 1);
  EXPECT_EQ(found.calls[0].transfer, 40'000);
  EXPECT_EQ(found.calls[0].parts.at(0).waiting, 60'000);
}

TEST_F(Nccl, InspectorsCutFileIsReadUpToTheCut) {
  const std::string one = inspected(0, 2, "AllReduce", 5, 4096, 100);
  const auto found = report({{"a.log", one + one.substr(0, one.size() / 2)}});
  EXPECT_EQ(found.calls.size(), 1U);
  EXPECT_EQ(trace_.files.at(0).truncated, 1U);
}

// The kernel's events on its channels have the time of a call; events of its proxies stand between.
TEST_F(Nccl, TheExamplePluginsCallsAreRead) {
  const std::string text =
      R"([
{"name": "Group API", "cat": "GROUP_API", "ph": "b", "id": 0, "pid": 225798, "tid": 1, "ts": 3433.595001, "args": {"groupApiId": 0, "groupDepth":1}},
{"name": "AllReduce", "cat": "COLL_API", "ph": "b", "id": 0, "pid": 225798, "tid": 1, "ts": 0.000000, "args": {"count": 262144, "datatype": "ncclFloat32", "root": 0, "GraphCaptured":0, "Stream": "0x50"}},
{"name": "AllReduce", "cat": "COLL", "ph": "b", "id": 0, "pid": 225798, "tid": 1, "ts": 111994.477997, "args": {"SeqNum": 0, "CommHash": 1493613951195738943, "Rank": 0, "Count": 262144, "Datatype": "ncclFloat32", "Algorithm": "RING", "Protocol": "SIMPLE", "nChannels": 2}},
{"name": "KernelCh", "cat": "GPU", "ph": "b", "id": 0, "pid": 225798, "tid": 1, "ts": 119711.888000, "args": {"Channel": 0, "StartGpuClk": 1756135989724672000, "StopGpuClk": 1756135989732831232}},
{"name": "RecvWait", "cat": "NET", "ph": "b", "id": 0, "pid": 225798, "tid": 1, "ts": 119707.677979, "args": {"Step": 0}},
{"name": "KernelCh", "cat": "GPU", "ph": "e", "id": 0, "pid": 225798, "tid": 1, "ts": 120111.888000},
{"name": "AllReduce", "cat": "COLL", "ph": "e", "id": 0, "pid": 225798, "tid": 1, "ts": 130000.0},
{}]
)";
  const auto found = report({{"trace-node-1.txt", text}});
  ASSERT_EQ(found.calls.size(), 1U);
  const CollectiveCall& call = found.calls[0];
  EXPECT_EQ(call.name, "allreduce");
  EXPECT_EQ(call.algorithm, "Ring, SIMPLE");
  EXPECT_EQ(call.bytes, 4 * 262144);
  EXPECT_EQ(call.transfer, 400'000);
  EXPECT_EQ(call.parts.at(0).rank, 0);
}

}  // namespace
}  // namespace assay::timeline
