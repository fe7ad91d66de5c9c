#pragma once

#include <filesystem>

#include "base/result.h"
#include "report/compare.h"
#include "store/store.h"

namespace assay {

struct JunitOptions {
  bool strict = false;                        // a flaky case is a failure
  const RunComparison* comparison = nullptr;  // then only what is new or lost is a failure
};

// JUnit XML, as CI servers read it: one test case a case, classname the API. Failed outcomes are
// failures; unsupported, skip and no_kernel are skipped, and so is a failure that was known before;
// all else passes. A case that failed once and then passed has a <flakyFailure>, which CI servers
// that know Surefire's reports show.
Status write_junit(RunReader& run, const JunitOptions& options, const std::filesystem::path& file);

}  // namespace assay
