#pragma once

#include <filesystem>

#include "base/result.h"
#include "store/store.h"

namespace assay {

// Writes engineV2's text files into `folder`. checkpoint.txt and the api_config_*.txt list one case
// on each line; log_inorder.log has the verdicts in the order in which the cases finished. Each
// file is replaced atomically.
Status export_text_logs(RunReader& run, const std::filesystem::path& folder);

}  // namespace assay
