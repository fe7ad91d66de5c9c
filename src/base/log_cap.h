#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace assay {

// Cuts the middle out of a log that is longer than `most` bytes: its first and last quarter of
// `most` stay, with a line between them. Others may append meanwhile (O_APPEND); what they write
// during the cut may come before the last quarter.
Status cap_log(const std::filesystem::path& path, std::uint64_t most);

// cap_log() for each file of the folder, except compute-sanitizer's, which does not append.
Status cap_logs(const std::filesystem::path& folder, std::uint64_t most);

}  // namespace assay
