#pragma once

// Memory of the host handed to a framework by DLPack, which all of them take.

#include <cstdint>
#include <vector>

#include "case/dtype.h"
#include "device/shared_inputs.h"
#include "native/python.h"

namespace assay::native {

// Whether frameworks can take tensors of this type.
bool known_to_dlpack(DType dtype);

// A capsule for a framework's from_dlpack(): a dense tensor of this shape, which keeps the memory
// until the framework lets it go. Null once a Python error is set.
Ref to_capsule(SharedTensor tensor, DType dtype, std::vector<std::int64_t> shape);

}  // namespace assay::native
