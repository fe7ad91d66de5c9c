#pragma once

// What a run comes to, in one line: the answer of a gate.

#include <cstdint>
#include <string>

#include "report/compare.h"
#include "report/run_report.h"

namespace assay {

struct RunVerdict {
  enum class Kind : std::uint8_t { passes, fails, not_judged };
  Kind kind = Kind::passes;
  std::string reason;  // "1 new fault against known.toml; 3 known"

  // "passes: REASON"
  std::string line(const Terminal& terminal = {}) const;
};

// By what is worse in `comparison`; without a comparison, or with `any_failure`, by every failure.
// `strict`: a flaky case counts as a failure. A run with cases that were compared only with
// themselves does not pass, unless `self_only` is true.
RunVerdict verdict_of(const RunReport& report, const RunComparison* comparison, bool any_failure,
                      bool strict, bool self_only = false);

}  // namespace assay
