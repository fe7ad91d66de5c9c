// The importers of files: each reads a small file made as its writer makes them, and none falls
// over a damaged one.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sqlite3.h>

#include "support.h"
#include "timeline/analysis/analysis.h"
#include "timeline/analysis/collectives.h"
#include "timeline/importers/chrome_trace.h"
#include "timeline/importers/importer.h"
#include "timeline/importers/recording_format.h"
#include "timeline/load.h"
#include "timeline/merge.h"

namespace assay::timeline {
namespace {

using test::TempFolder;

std::vector<std::string> shown(const Trace& trace) {
  std::vector<std::string> lines;
  for (const Slice& slice : trace.slices) {
    const Track& track = trace.tracks[slice.track];
    lines.push_back(std::string(trace.strings.text(slice.name)) + " " +
                    std::string(name(slice.kind)) + (track.gpu ? " gpu " : " host ") +
                    std::to_string(slice.begin) + "-" + std::to_string(slice.end));
  }
  return lines;
}

std::string event(const std::string& name) {
  return R"({"ph":"X","name":")" + name + R"(","cat":"c","pid":1,"tid":1,"ts":1,"dur":1})";
}

class Importers : public testing::Test {
 protected:
  Trace import(const std::string& text) {
    auto trace = import_trace(test::write(folder_ / "trace", text));
    EXPECT_TRUE(trace) << trace.error().message;
    return trace ? std::move(*trace) : Trace{};
  }
  TempFolder folder_;
};

TEST(Microseconds, AreExact) {
  const std::vector<std::pair<std::string, Nanos>> known{
      {"4373184468134.623", 4373184468134623},   {"0", 0},          {"12.5", 12500},
      {"1795230248413317", 1795230248413317000}, {"-1.001", -1001}, {"1.5e3", 1500000}};
  for (const auto& [text, expected] : known) {
    Nanos time = 0;
    EXPECT_TRUE(parse_microseconds(text, time)) << text;
    EXPECT_EQ(time, expected) << text;
  }
  Nanos time = 0;
  for (const std::string text : {"", "x", "1e300", "99999999999999999999", "1.5x", "--1",
                                 "--9223372036854775807", "--9999999999999999"}) {
    EXPECT_FALSE(parse_microseconds(text, time)) << text;
  }
}

TEST_F(Importers, ReadsKineto) {
  const Trace trace = import(R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "H"}],
    "host_name": "node7", "baseTimeNanoseconds": 1000000000000, "traceEvents": [
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 9, "tid": 9, "ts": 1.0, "dur": 99.5},
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 10.001, "dur": 5.5, "args": {"device": 0, "stream": 7, "grid": [1, 2]}},
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 13, "ts": 12, "dur": 4, "args": {"device": 0}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoH", "pid": 0, "tid": 7, "ts": 20, "dur": 1, "args": {"device": 0}},
    {"ph": "s", "id": 1, "pid": 9, "tid": 9, "ts": 1, "cat": "ac2g", "name": "ac2g"},
    {"ph": "X", "cat": "kernel", "name": "no time", "pid": 0, "tid": 7},
    {"ph": "M", "name": "process_name", "pid": 9, "tid": 0, "args": {"name": "python"}}]})");
  EXPECT_THAT(
      shown(trace),
      testing::ElementsAre("ProfilerStep#3 host host 1000000001000-1000000100500",
                           "gemm compute gpu 1000000010001-1000000015501",
                           "ncclDevKernel_AllReduce communication gpu 1000000012000-1000000016000",
                           "Memcpy DtoH memory gpu 1000000020000-1000000021000"));
  ASSERT_EQ(trace.steps.size(), 1U);
  EXPECT_EQ(trace.steps[0].number, 3);
  EXPECT_EQ(trace.tracks[0].machine, "node7");
  EXPECT_EQ(trace.tracks[0].process, "python 9");
  EXPECT_EQ(trace.tracks[1].label, "GPU 0 · stream 7");
  EXPECT_EQ(trace.files[0].malformed, 1U);
  EXPECT_EQ(trace.files[0].format, "PyTorch profiler");
  EXPECT_EQ(trace.flows.size(), 1U);
}

TEST_F(Importers, ReadsPaddlesProfiler) {
  const Trace trace =
      import(R"json({"displayTimeUnit": "ms", "schemaVersion": "1.0.2", "span_index": "0",
    "traceEvents": [
    {"name": "ProfileStep#0[63.105 ms]", "pid": 1, "tid": "1(Python)", "ts": 100, "dur": 50.5, "ph": "X", "cat": "ProfileStep"},
    {"name": "void gemm<int>[2.000 us]", "pid": 0, "tid": "7", "ts": 110, "dur": 2, "ph": "X", "cat": "Kernel"},
    {}]})json");
  EXPECT_THAT(shown(trace), testing::ElementsAre("ProfileStep#0 host host 100000-150500",
                                                 "void gemm<int> compute gpu 110000-112000"));
  EXPECT_EQ(trace.steps.size(), 1U);
  EXPECT_EQ(trace.files[0].format, "Paddle profiler");
}

TEST_F(Importers, ReadsWhatMergeWrites) {
  if (test::shared_folder().empty()) GTEST_SKIP() << "no shared/timeline beside the source tree";
  const auto merged =
      merge_job_logs({.log_dir = test::shared_folder() / "single", .devices = {0, 1}}, {},
                     OutputPaths::in(folder_.path()));
  ASSERT_TRUE(merged);
  const auto chrome = import_trace(folder_ / "pipeline_profile.json");
  const auto perfetto = import_trace(folder_ / "pipeline_profile_perfetto.json");
  ASSERT_TRUE(chrome && perfetto);
  EXPECT_EQ(chrome->slices.size(), merged->slices);
  EXPECT_EQ(shown(*chrome), shown(*perfetto));
  EXPECT_EQ(chrome->steps.size(), 3U);
}

TEST_F(Importers, MicroBatchesOfARecordingSurviveAMerge) {
  Trace trace;
  trace.tracks = {{.label = "GPU:0 jobs", .chrome_tid = "", .process = "a pid 7", .machine = ""}};
  const StringId name = trace.strings.intern("forward");
  trace.slices = {{.begin = 1000, .end = 2000, .name = name, .category = name, .micro_batch = 12},
                  {.begin = 3000, .end = 4000, .name = name, .category = name}};
  ASSERT_TRUE(write_trace(trace, OutputPaths::in(folder_.path())));
  const auto json = test::read_json(folder_ / "pipeline_profile.json");
  EXPECT_THAT(json.dump(), testing::HasSubstr("\"forward@12\""));
  for (const char* file : {"pipeline_profile.json", "pipeline_profile_perfetto.json"}) {
    const auto back = import_trace(folder_ / file);
    ASSERT_TRUE(back);
    ASSERT_EQ(back->slices.size(), 2U);
    EXPECT_EQ(back->slices[0].micro_batch, 12);
    EXPECT_EQ(back->strings.text(back->slices[0].name), "forward");
    EXPECT_EQ(back->slices[1].micro_batch, kNone);
  }
}

TEST_F(Importers, ABrokenJsonKeepsWhatCameBefore) {
  const Trace trace = import(
      R"({"traceEvents": [{"ph":"X","name":"a","cat":"c","pid":1,"tid":1,"ts":1,"dur":1},{"ph":"X","na)");
  EXPECT_THAT(shown(trace), testing::ElementsAre("a host host 1000-2000"));
  EXPECT_EQ(trace.files[0].truncated, 1U);
}

TEST_F(Importers, DeepAndEndlessJsonEndEarly) {
  const Trace deep = import("{\"traceEvents\": " + std::string(200'000, '['));
  EXPECT_EQ(deep.files[0].truncated, 1U);
  // One event of 64 MB is passed over, in bounded memory, and what follows it is read.
  const Trace endless = import("{\"traceEvents\": [{\"name\": \"" + std::string(64U << 20U, 'x') +
                               "\"}, " + event("b") + "]}");
  EXPECT_EQ(endless.files[0].malformed, 1U);
  EXPECT_THAT(shown(endless), testing::ElementsAre("b host host 1000-2000"));
}

TEST_F(Importers, ReadsAnNsysExport) {
  const auto path = folder_ / "report.sqlite";
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  const char* const kSql =
      "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
      "INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'ncclDevKernel_SendRecv'), (3, 'forward');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT, "
      "demangledName INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 200, 0, 7, 1), (150, 250, 0, 13, 2), "
      "(9, 5, 0, 7, 1);"
      "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, textId INT, "
      "globalTid INT);"
      "INSERT INTO NVTX_EVENTS VALUES (90, 300, 59, NULL, 3, 42), (90, NULL, 34, 'mark', NULL, 42);"
      "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT, utcTime TEXT);"
      "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1000000, '');"
      // A view that never ends must not be read.
      "CREATE VIEW CUPTI_ACTIVITY_KIND_MEMCPY AS WITH RECURSIVE c(start, end, deviceId, streamId) "
      "AS "
      "(SELECT 0, 0, 0, 0 UNION ALL SELECT start + 1, 0, 0, 0 FROM c) SELECT * FROM c;";
  ASSERT_EQ(sqlite3_exec(database, kSql, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  const auto trace = import_trace(path);
  ASSERT_TRUE(trace);
  EXPECT_THAT(
      shown(*trace),
      testing::ElementsAre("forward host host 1000090-1000300", "gemm compute gpu 1000100-1000200",
                           "ncclDevKernel_SendRecv communication gpu 1000150-1000250"));
  EXPECT_EQ(trace->files[0].backwards, 1U);
}

// The tables of rocprofiler-sdk's schema, whose names end with the process's id.
TEST_F(Importers, ReadsARocpdDatabase) {
  const auto path = folder_ / "results.db";
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  const char* const kSql =
      "CREATE TABLE rocpd_string_0a (id INT, string TEXT);"
      "INSERT INTO rocpd_string_0a VALUES (1, 'hipLaunchKernel'), (2, 'HIP_RUNTIME_API_EXT'), "
      "(3, 'step 4'), (4, 'MARKER_CORE_RANGE_API'), (5, 'MEMORY_COPY_HOST_TO_DEVICE');"
      "CREATE TABLE rocpd_info_node_0a (id INT, hostname TEXT);"
      "INSERT INTO rocpd_info_node_0a VALUES (1, 'node7');"
      "CREATE TABLE rocpd_info_process_0a (id INT, nid INT, pid INT);"
      "INSERT INTO rocpd_info_process_0a VALUES (1, 1, 4711);"
      "CREATE TABLE rocpd_info_thread_0a (id INT, tid INT);"
      "INSERT INTO rocpd_info_thread_0a VALUES (1, 4712);"
      "CREATE TABLE rocpd_info_agent_0a (id INT, pid INT, type TEXT, type_index INT, product_name "
      "TEXT);"
      "INSERT INTO rocpd_info_agent_0a VALUES (1, 1, 'CPU', 0, 'EPYC'), (2, 1, 'GPU', 3, "
      "'AMD Instinct MI300X');"
      "CREATE TABLE rocpd_info_kernel_symbol_0a (id INT, kernel_name TEXT, display_name TEXT);"
      "INSERT INTO rocpd_info_kernel_symbol_0a VALUES (1, 'k.kd', 'gemm'), (2, 'r.kd', "
      "'ncclDevKernel_Generic');"
      "CREATE TABLE rocpd_event_0a (id INT, category_id INT, stack_id INT);"
      "INSERT INTO rocpd_event_0a VALUES (1, 2, 50), (2, 4, 51), (3, 2, 50);"
      "CREATE TABLE rocpd_region_0a (pid INT, tid INT, start INT, end INT, name_id INT, event_id "
      "INT);"
      "INSERT INTO rocpd_region_0a VALUES (1, 1, 10, 20, 1, 1), (1, 1, 5, 400, 3, 2);"
      "CREATE TABLE rocpd_kernel_dispatch_0a (pid INT, agent_id INT, kernel_id INT, stream_id INT, "
      "start INT, end INT, event_id INT);"
      "INSERT INTO rocpd_kernel_dispatch_0a VALUES (1, 2, 1, 6, 100, 200, 3), (1, 2, 2, 7, 150, "
      "250, NULL), (1, 2, 1, 6, 9, 5, NULL);"
      "CREATE TABLE rocpd_memory_copy_0a (pid INT, start INT, end INT, name_id INT, dst_agent_id "
      "INT, src_agent_id INT, size INT, stream_id INT, event_id INT);"
      "INSERT INTO rocpd_memory_copy_0a VALUES (1, 300, 320, 5, 2, 1, 4096, 6, NULL);";
  char* error = nullptr;
  ASSERT_EQ(sqlite3_exec(database, kSql, nullptr, nullptr, &error), SQLITE_OK) << error;
  sqlite3_close(database);
  const auto trace = import_trace(path);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_THAT(shown(*trace),
              testing::ElementsAre("step 4 host host 5-400", "hipLaunchKernel host host 10-20",
                                   "gemm compute gpu 100-200",
                                   "ncclDevKernel_Generic communication gpu 150-250",
                                   "MEMORY_COPY_HOST_TO_DEVICE memory gpu 300-320"));
  EXPECT_EQ(trace->files[0].backwards, 1U);
  EXPECT_EQ(trace->sources.at(0).host, "node7");
  EXPECT_EQ(trace->sources.at(0).device, "AMD Instinct MI300X");
  ASSERT_EQ(trace->steps.size(), 1U);
  EXPECT_EQ(trace->steps[0].number, 4);
  for (const Slice& slice : trace->slices) {
    const Track& track = trace->tracks[slice.track];
    EXPECT_EQ(track.device, track.gpu ? 3 : kNone);
    EXPECT_EQ(trace->launch_of(slice) != nullptr, slice.begin == 100);
  }
}

TEST_F(Importers, AnNsysExportWithoutKernelsSaysWhy) {
  const auto path = folder_ / "report.sqlite";
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  const char* const kSql =
      "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, globalTid INT);"
      "CREATE TABLE DIAGNOSTIC_EVENT (timestamp INT, severity INT, text TEXT);"
      "INSERT INTO DIAGNOSTIC_EVENT VALUES (1, 2, 'CUPTI is not available.'), (2, 1, 'Common');";
  ASSERT_EQ(sqlite3_exec(database, kSql, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  const auto trace = import_trace(path);
  ASSERT_TRUE(trace);
  EXPECT_THAT(trace->files[0].notes, testing::ElementsAre(testing::HasSubstr("no CUDA kernels"),
                                                          "nsys: CUPTI is not available."));
}

// Kernels are told which collective they are by PyTorch's range around their launch.
TEST_F(Importers, NsysRangesNameCollectives) {
  const auto path = folder_ / "report.sqlite";
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  const char* const kSql =
      "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
      "INSERT INTO StringIds VALUES (1, 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(args)'), "
      "(2, 'cuLaunchKernelEx'), "
      "(3, 'nccl:all_reduce, seq = 4, op_id = 9, sizes = [[100, 3], [20]], input_op_ids = [[(1, "
      "0)]]');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT, "
      "demangledName INT, correlationId INT, globalPid INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 200, 0, 7, 1, 5, 16777216);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId "
      "INT, nameId INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (20, 22, 16777223, 5, 2);"
      "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, textId INT, "
      "globalTid INT);"
      "INSERT INTO NVTX_EVENTS VALUES (10, 30, 59, NULL, 3, 16777223);";
  ASSERT_EQ(sqlite3_exec(database, kSql, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  const auto trace = import_trace(path);
  ASSERT_TRUE(trace);
  const CollectiveReport report = collectives_of(*trace);
  ASSERT_EQ(report.calls.size(), 1U);
  EXPECT_EQ(report.calls[0].name, "allreduce");
  EXPECT_EQ(report.calls[0].bytes, 640);
}

// Two processes in one export are two ranks; a longer sequence is a larger grid, not a slow GPU.
TEST_F(Importers, NsysProcessesAreRanksWithGrids) {
  const auto path = folder_ / "report.sqlite";
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  const char* const kSql =
      "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
      "INSERT INTO StringIds VALUES (1, 'gemm');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT, "
      "demangledName INT, correlationId INT, globalPid INT, gridX INT, gridY INT, gridZ INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 200, 1, 7, 1, 5, 16777216, 8, 4, 2), "
      "(100, 150, 0, 7, 1, 5, 33554432, 8, 4, 1);";
  ASSERT_EQ(sqlite3_exec(database, kSql, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  const std::vector<test::fs::path> paths{path};
  const auto trace = load_traces(paths, {});
  ASSERT_TRUE(trace);
  ASSERT_EQ(trace->slices.size(), 2U);
  for (const Slice& slice : trace->slices) {
    const Track& track = trace->tracks[slice.track];
    EXPECT_EQ(track.rank, track.device);
    EXPECT_EQ(trace->details[slice.detail].blocks, track.device == 0 ? 32U : 64U);
  }
}

class Recordings : public Importers {
 protected:
  // Three blocks of one slice each.
  static std::vector<std::string> parts() {
    std::vector<std::string> parts{RecordingEncoder::header(42, "node7")};
    for (int i = 0; i < 3; ++i) {
      RecordingEncoder encoder;
      encoder.add({.name = "forward",
                   .kind = Kind::compute,
                   .gpu = true,
                   .device = 1,
                   .lane = 4,
                   .begin = 100 + i,
                   .end = 200 + i,
                   .micro_batch = i});
      if (i == 2) encoder.add_step({7, 100, 300}, 1);
      parts.push_back(encoder.take_block());
    }
    return parts;
  }
};

TEST_F(Recordings, ComeBack) {
  const auto file = parts();
  const Trace trace = import(file[0] + file[1] + file[2] + file[3]);
  EXPECT_THAT(shown(trace),
              testing::ElementsAre("step7 other host 100-300", "forward compute gpu 100-200",
                                   "forward compute gpu 101-201", "forward compute gpu 102-202"));
  EXPECT_EQ(trace.slices[3].micro_batch, 2);
  EXPECT_EQ(trace.tracks[0].label, "GPU:1 stream 4");
  EXPECT_EQ(trace.tracks[0].machine, "node7");
  ASSERT_EQ(trace.steps.size(), 1U);
  EXPECT_EQ(trace.steps[0].number, 7);
}

TEST_F(Recordings, LoseOnlyADamagedBlock) {
  auto file = parts();
  file[2][30] ^= 1;
  const Trace trace = import(file[0] + file[1] + file[2] + file[3]);
  EXPECT_THAT(shown(trace),
              testing::ElementsAre("step7 other host 100-300", "forward compute gpu 100-200",
                                   "forward compute gpu 102-202"));
  EXPECT_EQ(trace.files[0].malformed, 1U);
}

// Kernels may come before the launches that name their range, and these before the range.
TEST_F(Recordings, JoinWhatComesInAnyOrder) {
  const auto kernel = [](std::int32_t device, std::uint64_t id, Nanos begin, Nanos end) {
    RecordingEncoder encoder;
    encoder.add({.name = "k",
                 .kind = Kind::compute,
                 .gpu = true,
                 .device = device,
                 .lane = 4,
                 .begin = begin,
                 .end = end,
                 .id = id});
    return encoder.take_block();
  };
  const auto range = [](std::string_view name, std::uint64_t id, std::uint64_t parent) {
    RecordingEncoder encoder;
    encoder.add({.name = name,
                 .job = true,
                 .lane = 1,
                 .begin = 1,
                 .end = 2,
                 .micro_batch = 3,
                 .id = id,
                 .parent = parent});
    return encoder.take_block();
  };
  const auto launches = [](std::uint64_t id, std::vector<std::uint32_t> calls) {
    RecordingEncoder encoder;
    encoder.add_launches(id, calls);
    return encoder.take_block();
  };
  RecordingEncoder step;
  step.add_step({9, 1, 2}, 5);
  // A range that names itself or a later one as its parent is damaged: it has none.
  std::vector<std::string> blocks{
      kernel(0, 100, 50, 60), kernel(1, 101, 55, 75),  kernel(0, 102, 80, 90),
      kernel(0, 104, 95, 97), launches(7, {101, 102}), launches(6, {100}),
      launches(5, {104}),     range("inner", 7, 6),    range("outer", 6, 5),
      range("broken", 8, 8),  step.take_block()};
  for (int turn = 0; turn < 2; ++turn) {
    std::string file = RecordingEncoder::header(42, "node7");
    for (const std::string& block : blocks) file += block;
    const Trace trace = import(file);
    std::vector<std::string> jobs;
    for (const Slice& slice : trace.slices) {
      const Track& track = trace.tracks[slice.track];
      if (!track.jobs) continue;
      jobs.push_back(track.label + " " + std::string(trace.strings.text(slice.name)) + " " +
                     std::to_string(slice.begin) + "-" + std::to_string(slice.end));
    }
    EXPECT_THAT(jobs,
                testing::UnorderedElementsAre("GPU:0 jobs outer 50-90", "GPU:0 jobs inner 80-90",
                                              "GPU:1 jobs inner 55-75", "GPU:1 jobs outer 55-75"));
    ASSERT_EQ(trace.steps.size(), 1U);
    EXPECT_EQ(trace.steps[0].begin, 50);
    EXPECT_EQ(trace.steps[0].end, 97);
    std::reverse(blocks.begin(), blocks.end());
  }
}

// Three steps of two micro batches each, in ranges without numbers; the host launches late, so the
// GPU is idle between all kernels and between steps.
TEST_F(Recordings, RangesInStepsAreJobsAndTheHostIsLate) {
  RecordingEncoder encoder;
  std::uint64_t id = 0;
  std::uint32_t call = 0;
  for (int step = 0; step < 3; ++step) {
    const std::uint64_t of_step = ++id;
    encoder.add_step({step, 1000 * step + 1, 1000 * step + 900}, of_step);
    const char* const names[] = {"forward", "forward", "backward", "backward"};
    for (int i = 0; i < 4; ++i) {
      const Nanos begin = 1000 * step + 100 + 200 * i;
      encoder.add({.name = names[i],
                   .job = true,
                   .lane = 1,
                   .begin = begin - 20,
                   .end = begin - 10,
                   .id = ++id,
                   .parent = of_step});
      encoder.add({.name = "gemm",
                   .kind = Kind::compute,
                   .gpu = true,
                   .device = 0,
                   .lane = 7,
                   .begin = begin,
                   .end = begin + 50,
                   .id = ++call});
      encoder.add_launches(id, std::vector<std::uint32_t>{call});
    }
  }
  const std::vector<test::fs::path> paths{test::write(
      folder_ / "a.assayrec", RecordingEncoder::header(42, "node7") + encoder.take_block())};
  LoadOptions options;
  options.import.analysis = true;
  const auto trace = load_traces(paths, options);
  ASSERT_TRUE(trace) << trace.error().message;
  const Analysis analysis = analyse(*trace);
  std::vector<std::string> jobs;
  for (const Slice& slice : trace->slices) {
    if (!trace->tracks[slice.track].jobs) continue;
    jobs.push_back(fmt::format("{} {}", trace->strings.text(slice.category), slice.micro_batch));
  }
  EXPECT_THAT(std::span(jobs).first(4),
              testing::ElementsAre("forward 0", "forward 1", "backward 0", "backward 1"));
  ASSERT_EQ(analysis.schedules.size(), 3U);
  EXPECT_EQ(analysis.schedules[0].reason, "one device: a schedule needs several stages");
  // From the first kernel to the next step's first one; the last step ends with its last kernel.
  EXPECT_THAT(analysis.lengths, testing::ElementsAre(1000, 1000, 650));
  const TimeShare& share = analysis.devices.at(0).steps.at(0);
  EXPECT_EQ(share.compute, 200);
  EXPECT_EQ(share.idle_by[static_cast<std::size_t>(IdleCause::host)], 800);
  EXPECT_EQ(share.idle, 800);
}

// A process that is killed leaves a file that ends anywhere.
TEST_F(Recordings, EndAnywhere) {
  const auto file = parts();
  const std::string all = file[0] + file[1] + file[2] + file[3];
  for (std::size_t length = file[0].size(); length <= all.size(); ++length) {
    const Trace trace = import(all.substr(0, length));
    std::size_t whole = 0;
    std::size_t end = file[0].size();
    for (std::size_t i = 1; i < file.size() && (end += file[i].size()) <= length; ++i) ++whole;
    const std::size_t steps = length == all.size() ? 1 : 0;  // the last block holds it
    ASSERT_EQ(trace.slices.size(), whole + steps) << length;
  }
}

TEST_F(Recordings, OfALaterVersionAreRefused) {
  auto file = parts();
  file[0][8] = 3;
  const Trace trace = import(file[0] + file[1]);
  EXPECT_TRUE(trace.slices.empty());
  EXPECT_THAT(trace.files[0].notes, testing::ElementsAre("unknown version 3"));
}

TEST_F(Importers, WhatNobodyKnowsIsAUsageError) {
  const auto trace = import_trace(test::write(folder_ / "x", "ELF or so"));
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().kind, ErrorKind::usage);
}

}  // namespace
}  // namespace assay::timeline
