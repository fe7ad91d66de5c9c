// Speed of measure() in bytes of both streams, and as a share of memcpy (read and written) in the
// same run. "noise": half of the elements differ by one or two units in the last place, as results
// of two kernels do. "wide": every element differs by ten bits more. "equal": the same bits.

#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "fill/fill.h"
#include "fill/kernels.h"
#include "fill/numbers.h"
#include "measure/kernels.h"

namespace {

using assay::DType;
using assay::MeasureKernels;

constexpr std::size_t kBytes = std::size_t{64} << 20;
enum class Difference { none, noise, wide };

// Changes the last bits of floats or integers.
template <typename Code>
void disturb(std::vector<std::byte>& bytes, Difference difference) {
  std::minstd_rand random(1);
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(Code)) {
    auto code = assay::load<Code>(bytes.data() + i);
    const auto draw = random();
    if (difference == Difference::noise && draw % 2 == 0) {
      code = static_cast<Code>(code + 1 + draw / 2 % 2);
    }
    if (difference == Difference::wide) code = static_cast<Code>(code ^ (draw & 1023));
    assay::store(bytes.data() + i, code);
  }
}

std::vector<std::byte> disturbed(std::vector<std::byte> bytes, std::size_t size,
                                 Difference difference) {
  if (difference == Difference::none) return bytes;
  if (size == 1) disturb<std::uint8_t>(bytes, difference);
  if (size == 2) disturb<std::uint16_t>(bytes, difference);
  if (size == 4) disturb<std::uint32_t>(bytes, difference);
  if (size >= 8) disturb<std::uint64_t>(bytes, difference);
  return bytes;
}

void compare(benchmark::State& state, const MeasureKernels& kernels, DType dtype,
             Difference difference) {
  std::vector<std::byte> left(kBytes);
  assay::fill(assay::default_rule(dtype), {}, dtype, left);
  const auto right = disturbed(left, assay::size_of(dtype), difference);
  for (auto _ : state) {
    benchmark::DoNotOptimize(assay::measure_with(kernels, dtype, left, right, {1e-2, 1e-2}));
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kBytes * 2));
}

void copy(benchmark::State& state) {
  std::vector<std::byte> from(kBytes, std::byte{1});
  std::vector<std::byte> to(kBytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), kBytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kBytes * 2));
}

// Prints each rate and its share of memcpy's.
class Ratios : public benchmark::ConsoleReporter {
 public:
  Ratios() : ConsoleReporter(OO_None) {}
  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<Run> with_ratio = runs;
    for (Run& run : with_ratio) {
      const double rate = run.counters["bytes_per_second"];
      if (memcpy_rate_ == 0) memcpy_rate_ = rate;
      run.report_label = std::to_string(rate / memcpy_rate_).substr(0, 4) + " of memcpy";
    }
    ConsoleReporter::ReportRuns(with_ratio);
  }

 private:
  double memcpy_rate_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  benchmark::RegisterBenchmark("memcpy", copy);
  const auto add = [](const std::string& name, const MeasureKernels& kernels, DType dtype,
                      Difference difference) {
    benchmark::RegisterBenchmark((name + "/" + std::string(assay::name(dtype))).c_str(), compare,
                                 kernels, dtype, difference);
  };
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16,
                            DType::int32, DType::complex64}) {
    add("equal", assay::best_measure_kernels(), dtype, Difference::none);
    add("noise", assay::best_measure_kernels(), dtype, Difference::noise);
    add("wide", assay::best_measure_kernels(), dtype, Difference::wide);
  }
  add("portable noise", assay::portable_measure_kernels(), DType::float32, Difference::noise);
  benchmark::Initialize(&argc, argv);
  Ratios reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
}
