#pragma once

// A copy of a project that a script may change. Scripts and small files of settings are copied,
// because scripts write to them; all other files, and folders of data, are links.

#include <filesystem>

#include "base/result.h"

namespace assay::chain::script {

// Copies `from` to `to`, which does not exist. Leaves out .git, logs and results of
// earlier runs, and what cannot be read.
Status copy_with_links(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace assay::chain::script
