#pragma once

// How a page's data is made small, and put into a text.

#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

// In the format of gzip, which browsers read without help.
Result<std::string> gzipped(std::string_view bytes);
std::string base64(std::string_view bytes);

}  // namespace assay
