// Needs a GPU: the device's bits against the host's, and what the device fills in a second.

#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "fill/fill.h"
#include "fill/fill_cuda.h"

namespace {

using assay::DType;
using assay::FillKind;
using assay::FillRule;

struct FreeDevice {
  void operator()(void* memory) const { cudaFree(memory); }
};
using DeviceMemory = std::unique_ptr<void, FreeDevice>;

DeviceMemory allocate(std::size_t bytes) {
  void* memory = nullptr;
  return DeviceMemory(cudaMalloc(&memory, bytes) == cudaSuccess ? memory : nullptr);
}

bool same_bits(const FillRule& rule, DType dtype, std::uint64_t count, std::uint64_t first,
               void* device) {
  const assay::FillKey key{7, 0xFEDCBA9876543210, 3};
  std::vector<std::byte> host(count * assay::size_of(dtype));
  std::vector<std::byte> copied(host.size());
  assay::fill(rule, key, dtype, host, first);
  if (assay::fill_cuda(rule, key, dtype, device, count, first) != 0) return false;
  if (cudaMemcpy(copied.data(), device, copied.size(), cudaMemcpyDeviceToHost) != cudaSuccess) {
    return false;
  }
  return std::memcmp(host.data(), copied.data(), host.size()) == 0;
}

int compare_all(void* device) {
  int failures = 0;
  for (const assay::DTypeInfo& dtype : assay::kDTypes) {
    for (int kind = 0; kind <= static_cast<int>(FillKind::constant); ++kind) {
      for (const auto& [low, high] : {std::pair{-0.5, 0.5}, {-3.0, 100.0}, {1.0, 1e9}}) {
        for (const std::uint64_t first :
             {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{1} << 33}) {
          const FillRule rule{static_cast<FillKind>(kind), low, high, 37};
          if (same_bits(rule, dtype.dtype, 10007, first, device)) continue;
          std::printf("differs: %s kind %d [%g, %g) from %llu\n", dtype.name.data(), kind, low,
                      high, static_cast<unsigned long long>(first));
          ++failures;
        }
      }
    }
  }
  return failures;
}

void print_speed(DType dtype, void* device, std::size_t bytes) {
  const std::uint64_t count = bytes / assay::size_of(dtype);
  const FillRule rule = assay::default_rule(dtype);
  cudaEvent_t start = nullptr;
  cudaEvent_t stop = nullptr;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  constexpr int kRuns = 20;
  assay::fill_cuda(rule, {}, dtype, device, count);
  cudaEventRecord(start);
  for (int i = 0; i < kRuns; ++i) assay::fill_cuda(rule, {}, dtype, device, count);
  cudaEventRecord(stop);
  cudaEventSynchronize(stop);
  float milliseconds = 0;
  cudaEventElapsedTime(&milliseconds, start, stop);
  std::printf("fill %s: %.0f GB/s\n", assay::name(dtype).data(),
              static_cast<double>(bytes) * kRuns / milliseconds / 1e6);
}

}  // namespace

int main() {
  constexpr std::size_t kBytes = std::size_t{1} << 30;
  const DeviceMemory device = allocate(kBytes);
  if (!device) {
    std::printf("no GPU memory: not run\n");
    return 77;
  }
  const int failures = compare_all(device.get());
  std::printf("%d of the comparisons with the host differ\n", failures);
  for (const DType dtype :
       {DType::float32, DType::bfloat16, DType::float16, DType::float64, DType::int64}) {
    print_speed(dtype, device.get(), kBytes);
  }
  return failures == 0 ? 0 : 1;
}
