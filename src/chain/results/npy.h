#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::chain::results {

// Reads all values of a NumPy file (.npy, format 1 to 3) in stored order. Types other than
// little-endian integers and floats of 4 or 8 bytes are errors, and so are pickled objects, which
// are never opened.
Result<std::vector<double>> read_npy(std::string_view bytes);

}  // namespace assay::chain::results
