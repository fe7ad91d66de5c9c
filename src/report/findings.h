#pragma once

// Findings: the faults of a run, each with its number of cases and its smallest case.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/terminal.h"
#include "report/compare.h"
#include "report/fault_element.h"
#include "report/shrunk.h"
#include "store/store.h"
#include "verdict/judge.h"

namespace assay {

struct Finding {
  FaultKey key;
  std::uint64_t cases = 0;
  FaultExtent extent;
  std::uint64_t id = 0;  // of its smallest case: the one with the fewest elements
  std::string text;
  std::string message;  // of that case
  Verdict verdict;      // of that case
  std::string shrunk;   // the smaller case that `assay shrink` found; usually empty
  // When the first and the last case finished, since 1970; 0 for invalid lines.
  std::int64_t first_ms = 0;
  std::int64_t last_ms = 0;
  FaultState state = FaultState::added;  // if the run is compared
  std::string why;                       // how it grew
  std::optional<FaultElement> element;   // of the case `id`, if its record was read
};

// The key of the fault that decides the case's outcome.
FaultKey key_of(std::string_view case_text, const Verdict& verdict);

// Sorts failures into findings. A case belongs to the finding of its first fault. With a
// comparison, it also belongs to the findings of its faults that are new or grew.
class FindingsCollector {
 public:
  // `seed`: of the run; it makes the inputs of cases that come with their records.
  explicit FindingsCollector(const RunComparison* comparison = nullptr, std::uint64_t seed = 0)
      : comparison_(comparison), seed_(seed) {}

  void add(const FinishedCase& finished);
  // An invalid line, by its name and error.
  void add(const InvalidLine& line);
  // In the order of findings_of().
  std::vector<Finding> findings() const;

 private:
  // Elements and text of a finding's smallest case so far.
  using Rank = std::pair<std::uint64_t, std::string>;
  void add(const FinishedCase& finished, const FaultKey& key, const FaultExtent& extent);

  const RunComparison* comparison_;
  std::uint64_t seed_;
  std::map<FaultKey, Finding> findings_;
  std::map<FaultKey, Rank> ranks_;
};

// The findings of a run: new ones first, then by severity (a crash before a mismatch), size of the
// error, and spread over dtypes and value regimes. Reads the first `most` failed cases of each
// outcome, and all invalid lines.
Result<std::vector<Finding>> findings_of(RunReader& run, const RunComparison* comparison,
                                         std::uint64_t most = kAllOfThem);
// Reads the records of the findings' cases and sets Finding::element. A case without lanes, such as
// that of a slot that died, has none.
Status add_elements(RunReader& run, std::vector<Finding>& findings);
// Sets Finding::shrunk from the results of `assay shrink`.
void add_shrunk(const ShrunkCases& shrunk, std::vector<Finding>& findings);

// For people: a few lines for each. `compared`: with its state (new, grown, known). On a terminal
// only messages are wrapped: cases stay whole, to be copied.
std::string findings_table(const std::vector<Finding>& findings, bool compared,
                           const Terminal& terminal = {});
// Without its case.
nlohmann::json finding_json(const Finding& finding);
nlohmann::json findings_json(const std::vector<Finding>& findings);
// The dtypes and value regimes of a finding: "float32, float64; usual, wide".
std::string circumstances(const Finding& finding);

}  // namespace assay
