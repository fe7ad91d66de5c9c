#pragma once

// fill() for memory of a GPU: the same bits. Built where nvcc is.

#include <cstdint>

#include "case/dtype.h"
#include "fill/fill.h"

namespace assay {

// Writes `count` elements, the first being number `first_element` of the tensor, to device memory
// aligned to the element. Asynchronous on `stream` (a cudaStream_t; nullptr is the default one).
// Returns a cudaError_t; 0 is success.
int fill_cuda(const FillRule& rule, const FillKey& key, DType dtype, void* out, std::uint64_t count,
              std::uint64_t first_element = 0, void* stream = nullptr);

}  // namespace assay
