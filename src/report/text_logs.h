#pragma once

#include <filesystem>

#include "base/result.h"
#include "store/store.h"

namespace assay {

// engineV2's text files in `folder`, made anew from the store: checkpoint.txt and the
// api_config_*.txt hold one case on each line; log_inorder.log tells each case's verdict in the
// order in which they came. Each file is replaced in one step.
Status export_text_logs(RunReader& run, const std::filesystem::path& folder);

}  // namespace assay
