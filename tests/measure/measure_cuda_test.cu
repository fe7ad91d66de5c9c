// Needs a GPU: compares the device's measurement with the host's.

#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "fill/fill.h"
#include "measure/measure.h"
#include "measure/measure_cuda.h"

namespace {

using assay::DType;
using assay::Measurement;
using assay::Tolerance;
using Bytes = std::vector<std::byte>;

struct FreeDevice {
  void operator()(void* memory) const { cudaFree(memory); }
};
using DeviceMemory = std::unique_ptr<void, FreeDevice>;

DeviceMemory allocate(std::size_t bytes) {
  void* memory = nullptr;
  return DeviceMemory(cudaMalloc(&memory, bytes) == cudaSuccess ? memory : nullptr);
}

// How often an element is changed, and whether in its last bits or anywhere.
struct Change {
  unsigned one_in;
  bool last_bits;
};

Bytes changed(Bytes bytes, DType dtype, Change change) {
  std::mt19937 random(change.one_in);
  const std::size_t size = assay::size_of(dtype);
  if (change.one_in == 0) return bytes;
  for (std::size_t i = 0; i < bytes.size(); i += size) {
    if (random() % change.one_in != 0) continue;
    if (change.last_bits) {
      bytes[i] ^= static_cast<std::byte>(1 + random() % 3);
    } else {
      for (std::size_t k = 0; k < size; ++k) bytes[i + k] = static_cast<std::byte>(random());
    }
  }
  return bytes;
}

// Replaces NaN, which is unequal to itself, by a number.
Measurement without_nan(Measurement m) {
  for (auto* const offender : {&m.first, &m.worst}) {
    for (auto* const side : {&offender->left, &offender->right}) {
      for (double& value : *side) value = std::isnan(value) ? 12345 : value;
    }
  }
  return m;
}

struct Device {
  DeviceMemory left;
  DeviceMemory right;
  DeviceMemory scratch;
  void* result = nullptr;
};

bool same(const Device& device, DType dtype, const Bytes& left, const Bytes& right, Tolerance under,
          std::size_t skip) {
  const std::size_t bytes = left.size() - skip * assay::size_of(dtype);
  cudaMemcpy(device.left.get(), left.data(), left.size(), cudaMemcpyHostToDevice);
  cudaMemcpy(device.right.get(), right.data(), right.size(), cudaMemcpyHostToDevice);
  const std::size_t offset = left.size() - bytes;
  Measurement found;
  const int error = assay::measure_cuda(dtype, static_cast<std::byte*>(device.left.get()) + offset,
                                        static_cast<std::byte*>(device.right.get()) + offset,
                                        bytes / assay::size_of(dtype), under,
                                        {device.scratch.get(), device.result}, found);
  const Measurement expected = assay::measure(dtype, std::span(left).subspan(offset),
                                              std::span(right).subspan(offset), under);
  return error == 0 && without_nan(found) == without_nan(expected);
}

int compare_all(const Device& device) {
  int failures = 0;
  constexpr Change kChanges[] = {{0, true},  {2, true},     {1, true},
                                 {1, false}, {1000, false}, {50000, true}};
  for (const assay::DTypeInfo& dtype : assay::kDTypes) {
    for (const Change change : kChanges) {
      for (const std::size_t count : {1U, 1000U, 300007U, 5000000U}) {
        Bytes left(count * dtype.size);
        assay::fill(assay::default_rule(dtype.dtype), {}, dtype.dtype, left);
        const Bytes right = changed(left, dtype.dtype, change);
        for (const Tolerance under : {Tolerance{0, 0}, {1e-2, 1e-2}, {1e-5, 1e-3}}) {
          for (const std::size_t skip : {0U, 1U}) {
            if (same(device, dtype.dtype, left, right, under, skip)) continue;
            std::printf("differs: %s, one in %u, %zu elements from %zu\n", dtype.name.data(),
                        change.one_in, count, skip);
            ++failures;
          }
        }
      }
    }
  }
  return failures;
}

}  // namespace

int main() {
  constexpr std::size_t kBytes = std::size_t{128} << 20;
  Device device{allocate(kBytes), allocate(kBytes), allocate(assay::kMeasureCudaScratch)};
  if (!device.left || !device.right || !device.scratch ||
      cudaHostAlloc(&device.result, assay::kMeasureCudaResult, cudaHostAllocDefault) !=
          cudaSuccess) {
    std::printf("no GPU memory: not run\n");
    return 77;
  }
  cudaMemset(device.scratch.get(), 0, assay::kMeasureCudaScratch);
  const int failures = compare_all(device);
  std::printf("measure: %d of the comparisons with the host differ\n", failures);
  return failures == 0 ? 0 : 1;
}
