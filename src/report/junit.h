#pragma once

#include <filesystem>

#include "base/result.h"
#include "store/store.h"

namespace assay {

// JUnit XML, as CI servers read it: one test case a case, classname the API. Failed outcomes are
// failures, unsupported, skip and no_kernel are skipped, all else passes.
Status write_junit(Store& store, const std::filesystem::path& file);

}  // namespace assay
