#pragma once

// measure() on a GPU, with the same numbers. Built if nvcc is available.

#include <cstddef>
#include <cstdint>

#include "case/dtype.h"
#include "measure/measure.h"

namespace assay {

inline constexpr std::size_t kMeasureCudaScratch = std::size_t{64} << 10;
inline constexpr std::size_t kMeasureCudaResult = 1024;

// The memory of measure_cuda(). One call at a time may use it.
struct MeasureCudaMemory {
  // kMeasureCudaScratch bytes of device memory, aligned to 256 bytes (as by cudaMalloc). All zeros
  // before the first call; each successful call leaves it so.
  void* scratch = nullptr;
  // kMeasureCudaResult bytes of pinned host memory that the device can write (cudaHostAlloc).
  void* result = nullptr;
};

// Compares `count` elements of two buffers in device memory, aligned to the element. Runs on
// `stream` (a cudaStream_t; nullptr: the default stream) and waits for it. Returns a cudaError_t;
// `result` is valid if it is 0.
int measure_cuda(DType dtype, const void* left, const void* right, std::uint64_t count,
                 Tolerance under, const MeasureCudaMemory& memory, Measurement& result,
                 void* stream = nullptr);

}  // namespace assay
