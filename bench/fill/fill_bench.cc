// Speed of fill() on a warm buffer, compared with memcpy in the same run.

#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "case/dtype.h"
#include "fill/fill.h"
#include "fill/kernels.h"

namespace {

using assay::DType;
using assay::FillKey;

constexpr std::size_t kBytes = std::size_t{16} << 20;

void run(benchmark::State& state, const assay::FillKernels& kernels, assay::FillRule rule,
         DType dtype) {
  std::vector<std::byte> out(kBytes);
  for (auto _ : state) {
    assay::fill_with(kernels, rule, FillKey{1, 2, 3}, dtype, out, 0);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kBytes));
}

void defaults(benchmark::State& state, const assay::FillKernels& kernels, DType dtype) {
  run(state, kernels, assay::default_rule(dtype), dtype);
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

}  // namespace

int main(int argc, char** argv) {
  benchmark::RegisterBenchmark("memcpy (read + write)", copy);
  for (const assay::DTypeInfo& entry : assay::kDTypes) {
    benchmark::RegisterBenchmark(("avx2/" + std::string(entry.name)).c_str(), defaults,
                                 assay::avx2_fill_kernels(), entry.dtype);
  }
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    benchmark::RegisterBenchmark(("portable/" + std::string(assay::name(dtype))).c_str(), defaults,
                                 assay::portable_fill_kernels(), dtype);
  }
  const auto kind = [](const char* name, assay::FillRule rule) {
    benchmark::RegisterBenchmark(name, run, assay::best_fill_kernels(), rule, DType::float32);
  };
  kind("float32/distinct", {assay::FillKind::distinct, -0.5, 0.5, 1000});
  kind("float32/increasing", {assay::FillKind::increasing, -0.5, 0.5, 1000});
  kind("float32/symmetric", {assay::FillKind::symmetric, -0.5, 0.5, 1024});
  kind("float32/boxes", {assay::FillKind::boxes, 0, 100, 1});
  kind("float32/magnitudes", {assay::FillKind::magnitudes, 0, 1e30, 2});
  kind("float32/with_nan", {assay::FillKind::with_nan, -0.5, 0.5, 32});
  kind("float32/with_infinity", {assay::FillKind::with_infinity, -0.5, 0.5, 32});
  kind("float32/halves", {assay::FillKind::halves, -3, 3.5, 1});
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
