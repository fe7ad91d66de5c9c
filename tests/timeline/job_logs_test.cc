// Folders of logs: golden traces, steps, machines, order.

#include "timeline/importers/job_logs.h"

#include <gmock/gmock.h>

#include "support.h"
#include "timeline/merge.h"
#include "timeline/slice_source.h"

namespace assay::timeline {
namespace {

using test::job_line;
using test::TempFolder;

// A double near 1.7e15 has a quarter of a microsecond of resolution: the goldens are rounded so.
constexpr double kGoldenRounding = 0.26;

void expect_same_events(const test::EventTimes& ours, const test::EventTimes& theirs) {
  for (const auto& [event, times] : theirs) {
    const auto found = ours.find(event);
    ASSERT_NE(found, ours.end()) << "missing: " << event;
    ASSERT_EQ(found->second.size(), times.size()) << event;
    for (std::size_t i = 0; i < times.size(); ++i) {
      EXPECT_NEAR(found->second[i], times[i], kGoldenRounding) << event;
    }
  }
  EXPECT_EQ(ours.size(), theirs.size());
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

test::EventTimes renamed(const test::EventTimes& events,
                         const std::vector<std::pair<std::string, std::string>>& swaps) {
  test::EventTimes result;
  for (const auto& [event, times] : events) {
    std::string name = event;
    for (const auto& [a, b] : swaps) {
      name = replaced(replaced(replaced(name, a, "\x01"), b, a), "\x01", b);
    }
    result[name] = times;
  }
  return result;
}

class Golden : public testing::Test {
 protected:
  void SetUp() override {
    if (test::shared_folder().empty()) GTEST_SKIP() << "no shared/timeline beside the source tree";
  }
  Result<MergeResult> merge(const std::string& set, bool multi) {
    return merge_job_logs(
        {.log_dir = test::shared_folder() / set, .devices = {0, 1}, .multi_machine = multi}, {},
        OutputPaths::in(out_.path()));
  }
  test::EventTimes ours(const char* file) {
    return test::event_times(test::read_json(out_ / file));
  }
  static test::EventTimes golden(const std::string& set, const char* file) {
    return test::event_times(test::read_json(test::shared_folder() / set / file));
  }
  TempFolder out_;
};

TEST_F(Golden, OneMachine) {
  ASSERT_TRUE(merge("single", false));
  for (const char* file : {"pipeline_profile.json", "pipeline_profile_perfetto.json"}) {
    expect_same_events(ours(file), golden("single", file));
  }
}

// The goldens number machines in the order in which the file system listed them (machine1 first);
// ours by their names. So machines 0 and 1 trade places, and with them tracks 2334.. and 2336...
TEST_F(Golden, TwoMachines) {
  const auto result = merge("multi", true);
  ASSERT_TRUE(result);
  expect_same_events(
      ours("pipeline_profile.json"),
      renamed(golden("multi", "pipeline_profile.json"), {{"(machine:0)", "(machine:1)"}}));
  expect_same_events(
      ours("pipeline_profile_perfetto.json"),
      renamed(golden("multi", "pipeline_profile_perfetto.json"), {{"\"tid\":2334", "\"tid\":2336"},
                                                                  {"\"tid\":2335", "\"tid\":2337"},
                                                                  {"(machine:0)", "(machine:1)"}}));
  EXPECT_THAT(result->notes,
              testing::ElementsAre(testing::HasSubstr("warning: the clocks of machines 0 and 1")));
}

class Logs : public testing::Test {
 protected:
  test::fs::path log(const std::string& name, const std::string& text) {
    return test::write(folder_ / name, text);
  }
  // The merged Chrome trace's events in file order, as "phase name track time".
  std::vector<std::string> merged(JobLogOptions options = {}) {
    options.log_dir = folder_.path();
    result_ = merge_job_logs(options, {}, OutputPaths::in(out_.path()));
    EXPECT_TRUE(result_) << result_.error().message;
    std::vector<std::string> events;
    const auto trace = test::read_json(out_ / "pipeline_profile.json");
    for (const auto& event : trace.at("traceEvents")) {
      events.push_back(event.at("ph").get<std::string>() + " " +
                       event.at("name").get<std::string>() + " " +
                       event.at("tid").get<std::string>() + " " +
                       std::to_string(event.at("ts").get<std::int64_t>()));
    }
    return events;
  }
  TempFolder folder_, out_;
  Result<MergeResult> result_;
};

TEST_F(Logs, EventsOfAllDevicesComeInTheOrderOfTime) {
  log("workerlog.0",
      job_line(0, "forward", 0, "1.0", "3.0") + job_line(1, "backward", 0, "3.0", "5.0"));
  log("workerlog.1", job_line(0, "forward", 0, "2.0", "4.0"));
  EXPECT_THAT(merged(),
              testing::ElementsAre("B step0 Step 1000", "B forward_0 GPU0 1000",
                                   "B forward_0 GPU1 2000", "E forward_0 GPU0 3000",
                                   "B backward_1 GPU0 3000", "E forward_0 GPU1 4000",
                                   testing::AnyOf("E backward_1 GPU0 5000", "E step0 Step 5000"),
                                   testing::AnyOf("E backward_1 GPU0 5000", "E step0 Step 5000")));
}

TEST_F(Logs, LinesOutOfOrderAreSorted) {
  std::string text;
  for (int i : {3, 1, 0, 2}) {
    text += job_line(i, "backward", 1, std::to_string(i + 1) + ".0", std::to_string(i + 1) + ".5");
  }
  log("workerlog.0", text);
  const auto events = merged();
  std::vector<std::string> begins;
  for (const auto& event : events) {
    if (event.starts_with("B backward")) begins.push_back(event.substr(0, 12));
  }
  EXPECT_THAT(begins,
              testing::ElementsAre("B backward_0", "B backward_1", "B backward_2", "B backward_3"));
  EXPECT_EQ(result_->files[0].non_monotonic, 2U);  // 1 after 3, 0 after 1
}

TEST_F(Logs, StepsOfTheNvtxHookNameTheStepRow) {
  const std::string jobs = job_line(0, "forward", 0, "1.0", "2.0");
  log("workerlog.0", "NVTX range push: 7, time: 0.5\n" + jobs + "NVTX range pop, time: 2.5\n" +
                         "NVTX range push: 8, time: 2.6\nNVTX range pop, time: 3.0\n");
  log("workerlog.1",
      "NVTX range push: 7, time: 0.4\nNVTX range push: gelu, time: 0.7\n"
      "NVTX range pop, time: 0.8\nNVTX range pop, time: 2.7\n"
      "NVTX range push: 9, time: 4\n");
  EXPECT_THAT(merged(), testing::IsSupersetOf({"B step7 Step 400", "E step7 Step 2700",
                                               "B step8 Step 2700", "E step8 Step 3000"}));
  EXPECT_EQ(result_->files[1].unmatched_steps, 1U);
}

TEST_F(Logs, MachinesAreOrderedByNumber) {
  for (const char* machine : {"machine10", "machine2"}) {
    log(std::string(machine) + "/workerlog.0", job_line(0, "forward", 0, "1.0", "2.0"));
  }
  merged({.log_dir = {}, .devices = {0}, .multi_machine = true});
  const auto trace = test::read_json(out_ / "pipeline_profile_perfetto.json");
  EXPECT_EQ(trace.at("traceEvents")[1].at("args").at("name"), "GPU:0(machine:2)");
  EXPECT_EQ(trace.at("traceEvents")[2].at("args").at("name"), "GPU:0(machine:10)");
}

TEST_F(Logs, AMissingLogIsAUsageError) {
  log("workerlog.0", "");
  const auto result = merge_job_logs({.log_dir = folder_.path(), .devices = {0, 1}}, {},
                                     OutputPaths::in(out_.path()));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::usage);
  EXPECT_THAT(result.error().message, testing::HasSubstr("workerlog.1"));
}

// Nothing is known of its device, so an analysis does not call it idle.
TEST_F(Logs, AnAnalysisPassesOverWhatHasNoRecord) {
  log("workerlog.0", "");
  log("workerlog.1", job_line(0, "forward", 0, "1.0", "3.0"));
  JobLogOptions options;
  options.log_dir = folder_.path();
  const auto trace = load_job_logs(options, {});
  ASSERT_TRUE(trace) << trace.error().message;
  std::vector<std::string> labels;
  for (const Track& track : trace->tracks) labels.push_back(track.label);
  EXPECT_THAT(labels, testing::ElementsAre("STEP", "GPU:1"));
  ASSERT_EQ(trace->files.size(), 2U);
  EXPECT_TRUE(trace->files[1].unrelated());
  EXPECT_THAT(trace->files[1].path, testing::EndsWith("workerlog.0"));
}

TEST_F(Logs, AnUnrelatedLogSaysSo) {
  log("workerlog.0", "epoch 1, loss 2.5\n");
  merged();
  EXPECT_THAT(describe(result_->files, result_->notes), testing::HasSubstr("not a job log"));
}

struct Collector : TraceWriter {
  explicit Collector(std::vector<Slice>& into) : slices(into) {}
  std::vector<Slice>& slices;
  void begin_slice(const Slice& slice) override { slices.push_back(slice); }
  void end_slice(const Slice&) override {}
  Status finish() override { return {}; }
};

// Few slices stay in memory, many go to disk; those in order make one run there, others many.
TEST(SliceSorter, GivesBackEverySliceInOrder) {
  const TempFolder folder;
  for (const int count : {0, 1, 1000, 700'000}) {
    for (const int disorder : {0, 100, 10'000'000}) {
      std::vector<Nanos> begins;
      SliceSorter sorter(folder.path());
      std::uint32_t random = 1;
      for (int i = 0; i < count; ++i) {
        random = random * 1664525U + 1013904223U;
        begins.push_back(Nanos{i} * 10 + (disorder == 0 ? 0 : (random >> 4U) % disorder));
        ASSERT_TRUE(sorter.add({.begin = begins.back(), .end = begins.back() + 1, .job = i}));
      }
      std::vector<std::unique_ptr<SliceSource>> sorted;
      ASSERT_TRUE(sorter.finish(sorted));
      std::vector<Slice> got;
      const std::unique_ptr<TraceWriter> writers[] = {std::make_unique<Collector>(got)};
      ASSERT_TRUE(merge_slices(sorted, writers, 1));
      std::vector<bool> seen(begins.size());
      Nanos last = 0;
      for (const Slice& slice : got) {
        ASSERT_LE(last, slice.begin);
        last = slice.begin;
        const auto number = static_cast<std::size_t>(slice.job);
        ASSERT_EQ(slice.begin, begins[number]);
        ASSERT_FALSE(seen[number]) << "given twice";
        seen[number] = true;
      }
      EXPECT_EQ(std::count(seen.begin(), seen.end(), true), count) << disorder;
    }
  }
  EXPECT_TRUE(test::fs::is_empty(folder.path())) << "its file has no name";
}

}  // namespace
}  // namespace assay::timeline
