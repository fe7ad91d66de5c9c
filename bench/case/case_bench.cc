// Parsing speed on the public corpus, or on generated lines if it is absent. Goal: 1,000,000
// cases/s on one core.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "case/canonical.h"
#include "case/corpus.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// Empty if the corpus or xz is absent.
std::vector<std::string> public_corpus() {
  const char* const shared = std::getenv("ASSAY_SHARED");
  const fs::path base =
      shared != nullptr ? fs::path(shared) : fs::path(ASSAY_SOURCE_DIR) / "../shared";
  const fs::path packed = base / "corpora/paddle_api_configs.txt.xz";
  const Result<Fd> text = make_memory_file("corpus");
  if (!fs::exists(packed) || !text) return {};

  SpawnOptions options;
  options.argv = {"xz", "-dc", packed.string()};
  options.fds = {{text->get(), 1}};
  Result<Process> xz = Process::spawn(options);
  if (!xz || !xz->wait()) return {};

  std::vector<std::string> out;
  Result<CorpusReader> reader = CorpusReader::open(fmt::format("/proc/self/fd/{}", text->get()));
  CorpusLine line;
  while (reader && reader->next(line).value_or(false)) out.emplace_back(line.text);
  return out;
}

std::vector<std::string> load_lines() {
  std::vector<std::string> lines = public_corpus();
  for (int i = 0; lines.size() < 10'000; ++i) {
    lines.push_back(
        fmt::format("paddle.nn.functional.conv2d(Tensor([1, {}, 32, 32],\"float32\"), "
                    "padding=list[1,1,], scale=1e-05, data_format=\"NCHW\", name=None, )",
                    i));
  }
  return lines;
}

const std::vector<std::string>& lines() {
  static const std::vector<std::string> loaded = load_lines();
  return loaded;
}

void report(benchmark::State& state) {
  std::size_t bytes = 0;
  for (const std::string& line : lines()) bytes += line.size();
  const auto rounds = static_cast<std::int64_t>(state.iterations());
  state.SetItemsProcessed(rounds * static_cast<std::int64_t>(lines().size()));
  state.SetBytesProcessed(rounds * static_cast<std::int64_t>(bytes));
}

void parse(benchmark::State& state) {
  Case scratch;
  for (auto _ : state) {
    for (const std::string& line : lines()) {
      if (!parse_line(line, scratch, [](const Case&) {}))
        state.SkipWithError("a line does not parse");
    }
  }
  report(state);
}
BENCHMARK(parse)->Unit(benchmark::kMillisecond);

void parse_and_id(benchmark::State& state) {
  Case scratch;
  std::string canonical;
  for (auto _ : state) {
    for (const std::string& line : lines()) {
      const auto identify = [&](const Case& call) {
        canonical.clear();
        append_canonical(call, canonical);
        benchmark::DoNotOptimize(case_id(canonical));
      };
      if (!parse_line(line, scratch, identify)) state.SkipWithError("a line does not parse");
    }
  }
  report(state);
}
BENCHMARK(parse_and_id)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace assay

BENCHMARK_MAIN();
