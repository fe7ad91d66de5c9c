#pragma once

// Measures how far two results differ.

#include <cstddef>
#include <span>

#include "case/dtype.h"
#include "measure/measurement.h"

namespace assay {

// Compares equally long buffers of one dtype; their size is a multiple of the element size. (Of
// buffers of different length the common part is compared.) No alignment is needed.
Measurement measure(DType dtype, std::span<const std::byte> left, std::span<const std::byte> right,
                    Tolerance under);

}  // namespace assay
