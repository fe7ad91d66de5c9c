#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "report/compare.h"
#include "store/store.h"

namespace assay {

struct JunitOptions {
  bool strict = false;                        // a flaky case is a failure
  const RunComparison* comparison = nullptr;  // if given, only new faults and lost coverage fail
  // A larger run gets test cases for failures only, `most_failures` of each outcome: no CI server
  // accepts a file with millions of test cases.
  std::uint64_t each_case_up_to = 100'000;
  std::uint64_t most_failures = 20'000;
};

// Writes JUnit XML for CI servers: a test suite for each API with one test case for each case.
// Failed outcomes are failures; with a comparison only cases whose fault is new or grew, and lost
// coverage. unsupported, skip, no_kernel and known failures are skipped. A case that failed once
// and then passed has a <flakyFailure>, as Surefire writes it. In a run of many cases the test case
// "all other cases" of a suite counts those that are not listed. `time` is in seconds: what a case
// took in its slot, and the sum of a suite's cases.
Status write_junit(RunReader& run, const JunitOptions& options, const std::filesystem::path& file);

}  // namespace assay
