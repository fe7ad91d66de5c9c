#pragma once

#include <string>
#include <vector>

namespace assay {

// The paths that a pattern (*, ?, […]) matches, sorted. No shell is involved.
std::vector<std::string> paths_like(const std::string& pattern);

}  // namespace assay
