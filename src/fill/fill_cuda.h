#pragma once

// fill() on a GPU, with the same bits. Built if nvcc is available.

#include <cstdint>

#include "case/dtype.h"
#include "fill/fill.h"

namespace assay {

// Writes `count` elements from number `first_element` on to device memory, which is aligned to the
// element. Asynchronous on `stream` (a cudaStream_t; nullptr: the default stream). Returns a
// cudaError_t; 0 is success.
int fill_cuda(const FillRule& rule, const FillKey& key, DType dtype, void* out, std::uint64_t count,
              std::uint64_t first_element = 0, void* stream = nullptr);

}  // namespace assay
