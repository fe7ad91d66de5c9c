#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace assay::campaign {

// Appends to a log in several files: PATH is the newest, PATH.1 the one before it. Keeps `files`
// files of at most `file_bytes` bytes each; a longer line has a file of its own.
Status append_to_log(const std::filesystem::path& path, std::string_view text,
                     std::uint64_t file_bytes = 64U << 20U, int files = 8);

}  // namespace assay::campaign
