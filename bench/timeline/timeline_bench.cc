// How fast logs become traces. Figures are of one core; files lie in the temporary folder and are
// in the page cache after the first pass.

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "timeline/analysis/analysis.h"
#include "timeline/analysis/insights.h"
#include "timeline/load.h"
#include "timeline/merge.h"
#include "timeline/slice_source.h"

namespace assay::timeline {
namespace {

namespace fs = std::filesystem;

// Two logs of about 256 MiB each, as a pipeline run with job profiling prints them.
class BigLogs {
 public:
  BigLogs() {
    std::string name = (fs::temp_directory_path() / "assay-bench-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    for (int device = 0; device < 2; ++device) {
      std::ofstream log(folder_ / fmt::format("workerlog.{}", device));
      log << "Schedule Profiler start at step 3 and end at step 1000000\n";
      double now = 1.7e12 + device;
      std::string text;
      while (bytes_ < (256ULL << 20U) * static_cast<unsigned>(device + 1)) {
        text.clear();
        int job = 0;
        for (int micro = 0; micro < 16; ++micro) {
          add(text, job++, "recv_forward", micro, 0.2, now);
          add(text, job++, "forward", micro, 4.4, now);
          text += "[2026-11-20 10:20:30] loss: 3.14159, ips: 1234.5 tokens/s\n";
        }
        for (int micro = 0; micro < 16; ++micro) {
          add(text, job++, "backward", micro, 7.7, now);
          add(text, job++, "send_backward", micro, 0.2, now);
        }
        add(text, job, "optimizer", 0, 2, now);
        log << text;
        bytes_ += text.size();
      }
    }
  }
  BigLogs(const BigLogs&) = delete;
  BigLogs& operator=(const BigLogs&) = delete;
  ~BigLogs() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  const fs::path& folder() const { return folder_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  static void add(std::string& text, int job, const char* type, int micro, double took,
                  double& now) {
    text += fmt::format(
        "I1120 10:20:30.123456 12345 program_interpreter.cc:220] Profiler Info: Job ({}), type = "
        "{}, "
        "micro_batch_id = {}, job_start_time = {:.6f}, job_end_time = {:.6f}\n",
        job, type, micro, now, now + took);
    now += took + 0.5;
  }

  fs::path folder_;
  std::uint64_t bytes_ = 0;
};

BigLogs& logs() {
  static BigLogs made;
  return made;
}

void report_rate(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<std::int64_t>(logs().bytes()) * state.iterations());
}

void read_logs(benchmark::State& state) {
  const auto found = find_job_logs({.log_dir = logs().folder(), .devices = {}});
  for (auto _ : state) {
    for (const JobLogFile& log : found.value()) {
      auto reader = JobLogReader::open(log.path);
      JobLogRecord record;
      while (reader->next(record).value()) benchmark::DoNotOptimize(record);
    }
  }
  report_rate(state);
}
BENCHMARK(read_logs)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

void merge_logs(benchmark::State& state, bool chrome, bool perfetto_json, bool binary) {
  OutputPaths outputs = OutputPaths::in(logs().folder());
  if (!chrome) outputs.chrome.clear();
  if (!perfetto_json) outputs.perfetto_json.clear();
  if (!binary) outputs.perfetto_binary.clear();
  for (auto _ : state) {
    const auto result = merge_job_logs({.log_dir = logs().folder(), .devices = {}}, {}, outputs);
    if (!result) state.SkipWithError(result.error().message.c_str());
  }
  report_rate(state);
}
BENCHMARK_CAPTURE(merge_logs, to_nothing, false, false, false)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(merge_logs, to_binary, false, false, true)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(merge_logs, to_chrome_json, true, false, false)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(merge_logs, to_all_three, true, true, true)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime();

// A trace of PyTorch's profiler of 1 GiB: for each kernel two operators, a call of the runtime and
// the two ends of an arrow, with the args that they have, laid out as Kineto writes them.
class BigTrace {
 public:
  static constexpr std::uint64_t kBytes = 1ULL << 30U;

  BigTrace() {
    std::string name = (fs::temp_directory_path() / "assay-bench-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    std::ofstream file(path());
    file << R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
  "baseTimeNanoseconds": 1700000000000000000, "traceEvents": [)";
    std::string text;
    for (std::uint64_t i = 0; bytes_ < kBytes; ++i) {
      text.clear();
      add_kernel(text, i);
      file << text;
      bytes_ += text.size();
    }
    file << "\n  {\"ph\": \"M\", \"name\": \"end\", \"pid\": 1, \"tid\": 1, \"ts\": 0}]}\n";
  }
  BigTrace(const BigTrace&) = delete;
  BigTrace& operator=(const BigTrace&) = delete;
  ~BigTrace() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  fs::path path() const { return folder_ / "rank0.json"; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  static void add_kernel(std::string& text, std::uint64_t i) {
    constexpr std::uint64_t kKernelsPerStep = 1000;
    const double at = static_cast<double>(i) * 20.0;
    if (i % kKernelsPerStep == 0) {
      text += fmt::format(
          "\n  {{\n    \"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#{}\", "
          "\"pid\": 1166, \"tid\": 1166,\n    \"ts\": {:.3f}, \"dur\": {:.3f},\n    \"args\": {{\n "
          "     "
          "\"External id\": {},\"Record function id\": 0, \"Ev Idx\": {}\n    }}\n  }},",
          i / kKernelsPerStep, at, 20.0 * kKernelsPerStep, i, i);
    }
    for (const char* op : {"aten::linear", "aten::addmm"}) {
      text += fmt::format(
          "\n  {{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"{}\", \"pid\": 1166, "
          "\"tid\": "
          "1166,\n    \"ts\": {:.3f}, \"dur\": {:.3f},\n    \"args\": {{\n      \"External id\": "
          "{},\"Record function id\": 0, \"Concrete Inputs\": [\"\", \"\", \"\"], \"Input type\": "
          "[\"c10::BFloat16\", \"c10::BFloat16\", \"c10::BFloat16\"], \"Input Strides\": [[4096, "
          "1], "
          "[1, 4096], [1]], \"Input Dims\": [[8192, 4096], [4096, 4096], [4096]], \"Ev Idx\": "
          "{}\n    }}\n  }},",
          op, at, 15.125, i, i);
    }
    text += fmt::format(
        "\n  {{\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", "
        "\"pid\": "
        "1166, \"tid\": 1166,\n    \"ts\": {0:.3f}, \"dur\": 4.875,\n    \"args\": {{\n      "
        "\"External "
        "id\": {1}, \"cbid\": 211, \"correlation\": {2}\n    }}\n  }},\n  {{\n    \"ph\": \"s\", "
        "\"id\": "
        "{2}, \"pid\": 1166, \"tid\": 1166, \"ts\": {0:.3f},\n    \"cat\": \"ac2g\", \"name\": "
        "\"ac2g\"\n  }},",
        at + 5, i, i + 1);
    text += fmt::format(
        "\n  {{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void at::native::"
        "vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, "
        "std::array<char*, {4}ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, "
        "std::array<char*, {4}ul>)\", \"pid\": 0, \"tid\": 7,\n    \"ts\": {0:.3f}, \"dur\": "
        "12.512,\n    \"args\": {{\n      \"External id\": {1},\n      \"queued\": 0, \"device\": "
        "0, "
        "\"context\": 1,\n      \"stream\": 7, \"correlation\": {2},\n      \"registers per "
        "thread\": "
        "32,\n      \"shared memory\": 0,\n      \"blocks per SM\": 31.030304,\n      \"warps per "
        "SM\": "
        "124.121216,\n      \"grid\": [4096, 1, 1],\n      \"block\": [128, 1, 1],\n      \"est. "
        "achieved occupancy %\": 100\n    }}\n  }},\n  {{\n    \"ph\": \"f\", \"id\": {2}, "
        "\"pid\": 0, "
        "\"tid\": 7, \"ts\": {0:.3f},\n    \"cat\": \"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"\n  "
        "}},",
        at + 12, i, i + 1, 0, i % 40);
  }

  fs::path folder_;
  std::uint64_t bytes_ = 0;
};

BigTrace& big_trace() {
  static BigTrace made;
  return made;
}

void read_kineto(benchmark::State& state) {
  LoadOptions options;
  options.import.analysis = true;
  options.threads = 1;
  const std::vector<fs::path> paths{big_trace().path()};
  for (auto _ : state) {
    const auto trace = load_traces(paths, options);
    if (!trace || trace->slices.empty()) state.SkipWithError("cannot read");
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(big_trace().bytes()) * state.iterations());
}
BENCHMARK(read_kineto)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

// The same, and what `analyze` tells of it.
void analyze_kineto(benchmark::State& state) {
  LoadOptions options;
  options.import.analysis = true;
  options.threads = 1;
  const std::vector<fs::path> paths{big_trace().path()};
  for (auto _ : state) {
    const auto trace = load_traces(paths, options);
    if (!trace) {
      state.SkipWithError("cannot read");
      return;
    }
    const Analysis analysis = analyse(*trace);
    benchmark::DoNotOptimize(insights_of(*trace, analysis));
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(big_trace().bytes()) * state.iterations());
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_MB"] = static_cast<double>(usage.ru_maxrss) / 1024;
}
BENCHMARK(analyze_kineto)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

// Ten million slices (twenty million events) on eight tracks.
void write_ten_million(benchmark::State& state) {
  constexpr int kSlices = 10'000'000;
  Trace trace;
  const StringId name = trace.strings.intern("forward");
  for (int i = 0; i < 8; ++i) {
    trace.tracks.push_back(
        {.label = fmt::format("GPU:{}", i), .chrome_tid = "", .process = "", .machine = ""});
  }
  trace.slices.reserve(kSlices);
  for (int i = 0; i < kSlices; ++i) {
    const Nanos begin = 1'700'000'000'000'000'000 + Nanos{i} * 1000;
    trace.slices.push_back({.begin = begin,
                            .end = begin + 7000,
                            .job = i % 64,
                            .name = name,
                            .category = name,
                            .track = static_cast<std::uint32_t>(i % 8)});
  }
  OutputPaths outputs;
  outputs.perfetto_binary = logs().folder() / "ten-million";
  for (auto _ : state) {
    if (!write_trace(trace, outputs)) state.SkipWithError("cannot write");
  }
  state.SetItemsProcessed(kSlices * state.iterations());
}
BENCHMARK(write_ten_million)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace assay::timeline

BENCHMARK_MAIN();
