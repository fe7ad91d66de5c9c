#pragma once

// measure() for memory of a GPU: the same numbers. Built where nvcc is.

#include <cstddef>
#include <cstdint>

#include "case/dtype.h"
#include "measure/measure.h"

namespace assay {

inline constexpr std::size_t kMeasureCudaScratch = std::size_t{64} << 10;
inline constexpr std::size_t kMeasureCudaResult = 1024;

// What measure_cuda() works in, for one call at a time.
struct MeasureCudaMemory {
  // kMeasureCudaScratch bytes of device memory, aligned to 256 bytes as cudaMalloc gives them;
  // zeros before the first call, and left so by each that succeeds.
  void* scratch = nullptr;
  // kMeasureCudaResult bytes of pinned host memory that the device can write (cudaHostAlloc).
  void* result = nullptr;
};

// Compares `count` elements of two buffers in device memory, aligned to the element. Runs on
// `stream` (a cudaStream_t; nullptr is the default one) and waits for it. Returns a cudaError_t; 0
// is success, and `result` is valid then.
int measure_cuda(DType dtype, const void* left, const void* right, std::uint64_t count,
                 Tolerance under, const MeasureCudaMemory& memory, Measurement& result,
                 void* stream = nullptr);

}  // namespace assay
