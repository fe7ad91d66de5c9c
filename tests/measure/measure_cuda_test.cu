// Needs a GPU: the device's measurement against the host's, and how fast it is.

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

// NaN is not equal to itself: taken as one number here.
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
};

bool same(const Device& device, DType dtype, const Bytes& left, const Bytes& right, Tolerance under,
          std::size_t skip) {
  const std::size_t bytes = left.size() - skip * assay::size_of(dtype);
  cudaMemcpy(device.left.get(), left.data(), left.size(), cudaMemcpyHostToDevice);
  cudaMemcpy(device.right.get(), right.data(), right.size(), cudaMemcpyHostToDevice);
  const std::size_t offset = left.size() - bytes;
  Measurement found;
  const int error =
      assay::measure_cuda(dtype, static_cast<std::byte*>(device.left.get()) + offset,
                          static_cast<std::byte*>(device.right.get()) + offset,
                          bytes / assay::size_of(dtype), under, device.scratch.get(), found);
  const Measurement expected = assay::measure(dtype, std::span(left).subspan(offset),
                                              std::span(right).subspan(offset), under);
  return error == 0 && without_nan(found) == without_nan(expected);
}

int compare_all(const Device& device) {
  int failures = 0;
  constexpr Change kChanges[] = {{0, true}, {2, true}, {1, false}, {1000, false}, {50000, true}};
  for (const assay::DTypeInfo& dtype : assay::kDTypes) {
    for (const Change change : kChanges) {
      for (const std::size_t count : {1U, 1000U, 300007U}) {
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

void print_speed(const Device& device, DType dtype, std::size_t bytes, Change change) {
  Bytes part(std::size_t{1} << 24);
  assay::fill(assay::default_rule(dtype), {}, dtype, part);
  const Bytes other = changed(part, dtype, change);
  for (std::size_t at = 0; at < bytes; at += part.size()) {
    cudaMemcpy(static_cast<std::byte*>(device.left.get()) + at, part.data(), part.size(),
               cudaMemcpyHostToDevice);
    cudaMemcpy(static_cast<std::byte*>(device.right.get()) + at, other.data(), part.size(),
               cudaMemcpyHostToDevice);
  }
  cudaEvent_t start = nullptr;
  cudaEvent_t stop = nullptr;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  constexpr int kRuns = 10;
  Measurement found;
  for (int i = -1; i < kRuns; ++i) {
    if (i == 0) cudaEventRecord(start);
    assay::measure_cuda(dtype, device.left.get(), device.right.get(), bytes / assay::size_of(dtype),
                        {1e-2, 1e-2}, device.scratch.get(), found);
  }
  cudaEventRecord(stop);
  cudaEventSynchronize(stop);
  float milliseconds = 0;
  cudaEventElapsedTime(&milliseconds, start, stop);
  std::printf("measure %s, one in %u differs: %.0f GB/s of both streams\n",
              assay::name(dtype).data(), change.one_in,
              static_cast<double>(bytes) * 2 * kRuns / milliseconds / 1e6);
}

}  // namespace

int main() {
  constexpr std::size_t kBytes = std::size_t{1} << 30;
  const Device device{allocate(kBytes), allocate(kBytes), allocate(assay::kMeasureCudaScratch)};
  if (!device.left || !device.right || !device.scratch) {
    std::printf("no GPU memory: not run\n");
    return 77;
  }
  const int failures = compare_all(device);
  std::printf("%d of the comparisons with the host differ\n", failures);
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16, DType::float64}) {
    for (const Change change : {Change{0, true}, Change{2, true}}) {
      print_speed(device, dtype, kBytes, change);
    }
  }
  return failures == 0 ? 0 : 1;
}
