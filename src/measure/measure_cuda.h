#pragma once

// measure() for memory of a GPU: the same numbers. Built with -D ASSAY_CUDA=ON.

#include <cstddef>
#include <cstdint>

#include "case/dtype.h"
#include "measure/measure.h"

namespace assay {

// Device memory that measure_cuda() works in; aligned to 256 bytes, as cudaMalloc gives it.
inline constexpr std::size_t kMeasureCudaScratch = std::size_t{64} << 10;

// Compares `count` elements of two buffers in device memory, aligned to the element. Runs on
// `stream` (a cudaStream_t; nullptr is the default one) and waits for it. Returns a cudaError_t; 0
// is success, and `result` is valid then.
int measure_cuda(DType dtype, const void* left, const void* right, std::uint64_t count,
                 Tolerance under, void* scratch, Measurement& result, void* stream = nullptr);

}  // namespace assay
