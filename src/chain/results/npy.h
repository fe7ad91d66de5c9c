#pragma once

// Arrays that NumPy has saved (.npy, format 1 to 3), read as plain numbers.

#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::chain::results {

// All values in the order in which they are stored. Fails on what is no such file, on types other
// than little-endian integers and floats of 4 or 8 bytes, and on pickled objects, which are never
// opened.
Result<std::vector<double>> read_npy(std::string_view bytes);

}  // namespace assay::chain::results
