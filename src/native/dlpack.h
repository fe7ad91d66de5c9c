#pragma once

// Hands memory of the host to a framework by DLPack.

#include <cstdint>
#include <vector>

#include "case/dtype.h"
#include "device/shared_inputs.h"
#include "native/python.h"

namespace assay::native {

// Whether frameworks can take tensors of this type.
bool known_to_dlpack(DType dtype);

// A capsule for a framework's from_dlpack(): a dense tensor of this shape. It keeps the memory
// alive until the framework releases it. Null once a Python error is set.
Ref to_capsule(SharedTensor tensor, DType dtype, std::vector<std::int64_t> shape);

}  // namespace assay::native
