#pragma once

#include <cstddef>
#include <span>

#include "case/dtype.h"
#include "measure/measurement.h"

namespace assay {

// Measures how far two buffers of one dtype differ. Their sizes are multiples of the element size;
// if they are not equal, the common part is compared. No alignment is needed.
Measurement measure(DType dtype, std::span<const std::byte> left, std::span<const std::byte> right,
                    Tolerance under);

}  // namespace assay
