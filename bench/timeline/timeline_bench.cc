// How fast logs become traces. Figures are of one core; files lie in the temporary folder and are
// in the page cache after the first pass.

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "timeline/merge.h"
#include "timeline/slice_source.h"
#include "timeline/writers/perfetto_binary.h"

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
