// Needs a GPU: compares the device's bits and checksums with the host's.

#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "fill/checksum_cuda.h"
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
      for (const auto& [low, high] : {std::pair{-0.5, 0.5},
                                      {-3.0, 100.0},
                                      {1.0, 1e9},
                                      {0.0, 4294967296.0},
                                      {-1e-35, 1e-35},
                                      {-1e38, 1e38},
                                      {0.0, 5.0},
                                      {0.1, 3.0},
                                      {1e-30, 1.0}}) {
        for (const std::uint64_t first :
             {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{1} << 33}) {
          const FillRule rule{static_cast<FillKind>(kind), low, high, 37};
          if (same_bits(rule, dtype.dtype, 40009, first, device)) continue;
          std::printf("differs: %s kind %d [%g, %g) from %llu\n", dtype.name.data(), kind, low,
                      high, static_cast<unsigned long long>(first));
          ++failures;
        }
      }
    }
  }
  return failures;
}

int compare_checksums(void* device) {
  int failures = 0;
  std::uint64_t* sum = nullptr;
  if (cudaMalloc(reinterpret_cast<void**>(&sum), sizeof *sum) != cudaSuccess) return 1;
  std::vector<std::byte> host(std::size_t{20} << 20);
  assay::fill({FillKind::integers, 0, 256, 1}, {}, DType::uint8, host);
  cudaMemcpy(device, host.data(), host.size(), cudaMemcpyHostToDevice);
  std::vector<std::size_t> sizes{
      4097, 8192, 8193, 12288 + 240, 12288 + 241, 1000003, host.size() - 16};
  for (std::size_t size = 0; size <= 4096; size += size < 300 ? 1 : 37) sizes.push_back(size);
  sizes.push_back(4096);
  for (const std::size_t size : sizes) {
    for (const std::size_t from : {std::size_t{0}, std::size_t{8}, std::size_t{1}}) {
      std::uint64_t found = 0;
      cudaMemset(sum, 0, sizeof *sum);
      assay::add_checksum_cuda(static_cast<std::byte*>(device) + from, size, sum);
      cudaMemcpy(&found, sum, sizeof found, cudaMemcpyDeviceToHost);
      if (assay::checksum_of_cuda_sum(found, size) ==
          assay::checksum(std::span(host).subspan(from, size))) {
        continue;
      }
      std::printf("checksum differs: %zu bytes from %zu\n", size, from);
      ++failures;
    }
  }
  cudaFree(sum);
  return failures;
}

}  // namespace

int main() {
  const DeviceMemory device = allocate(std::size_t{64} << 20);
  if (!device) {
    std::printf("no GPU memory: not run\n");
    return 77;
  }
  const int fills = compare_all(device.get());
  const int checksums = compare_checksums(device.get());
  std::printf("fill: %d of the comparisons with the host differ; checksums: %d\n", fills,
              checksums);
  return fills + checksums == 0 ? 0 : 1;
}
