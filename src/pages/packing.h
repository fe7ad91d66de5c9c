#pragma once

// Compresses and encodes a page's data.

#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::pages {

// The bytes in gzip format. An error if memory runs out.
Result<std::string> gzipped(std::string_view bytes);
// The bytes in base64 (RFC 4648).
std::string base64(std::string_view bytes);

}  // namespace assay::pages
