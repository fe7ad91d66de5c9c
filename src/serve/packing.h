#pragma once

// Compresses and encodes a page's data.

#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

// gzip, which browsers decompress.
Result<std::string> gzipped(std::string_view bytes);
std::string base64(std::string_view bytes);

}  // namespace assay
