#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "report/compare.h"
#include "store/store.h"

namespace assay {

struct JunitOptions {
  bool strict = false;                        // a flaky case is a failure
  const RunComparison* comparison = nullptr;  // then only what is new or lost is a failure
  // Of a run with more cases, single test cases are failures only, so many of each outcome: no CI
  // server takes a file of millions.
  std::uint64_t each_case_up_to = 100'000;
  std::uint64_t most_failures = 20'000;
};

// JUnit XML, as CI servers read it: a test suite for each API, with the numbers of all its cases,
// and in it one test case a case, classname the API. Failed outcomes are failures; unsupported,
// skip and no_kernel are skipped, and so is a failure that was known before; all else passes. A
// case that failed once and then passed has a <flakyFailure>, which CI servers that know Surefire's
// reports show. In a run of many cases what is not listed is one test case "all other cases" of its
// suite, which says how many there are of which outcome.
Status write_junit(RunReader& run, const JunitOptions& options, const std::filesystem::path& file);

}  // namespace assay
