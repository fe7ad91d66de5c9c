#pragma once

// The failures of a run as distinct findings: those of one API that show in the same way are one.
// Where a run is compared with another, cases that are no longer tested are findings as well.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "report/compare.h"
#include "report/shrunk.h"
#include "store/store.h"
#include "verdict/judge.h"

namespace assay {

// What two failures have in common that are one finding.
struct FindingKey {
  std::string api;
  Outcome outcome = Outcome::mismatch;
  std::string where;  // "result[·]", "gradient of x", "the input x", "the paddle lane"
  std::string how;    // "value", "not finite", "shape", what was raised

  auto operator<=>(const FindingKey&) const = default;
  // Eight hexadecimal digits: the same finding in another run.
  std::string digest() const;
};

struct Finding {
  FindingKey key;
  std::uint64_t cases = 0;
  std::uint64_t new_cases = 0;   // of them, where the run is compared with another
  std::set<std::string> values;  // kinds of values under which it shows
  std::set<std::string> dtypes;  // of results or gradients
  std::uint64_t id = 0;          // of the case that shows it: the one with the fewest elements
  std::string text;
  Verdict verdict;            // of that case
  std::string shrunk;         // the smaller case that `assay shrink` has made of it; mostly empty
  std::int64_t first_ms = 0;  // when the first and the last of them finished, since 1970
  std::int64_t last_ms = 0;
};

// What a failure has in common with others. `verdict` is judge()'s, with its fault.
FindingKey key_of(std::string_view case_text, const Verdict& verdict);

// Sorts failures into findings, one after another.
class FindingsCollector {
 public:
  explicit FindingsCollector(const RunComparison* comparison = nullptr);

  // Whether the comparison says of this case that it is no longer tested.
  bool has_lost(std::uint64_t id) const { return lost_.contains(id); }
  // A case that failed or was lost. `verdict` is judge()'s, with its fault.
  void add(const FinishedCase& finished, const Verdict& verdict);
  // In the order of findings_of().
  std::vector<Finding> findings() const;

 private:
  // Of the case that shows a finding: what is new before what was known, the smallest before
  // others.
  using Rank = std::tuple<bool, std::uint64_t, std::string>;

  std::map<FindingKey, Finding> findings_;
  std::map<FindingKey, Rank> ranks_;
  std::set<std::uint64_t> new_;
  std::set<std::uint64_t> lost_;
};

// Those of the framework under test first, then by number of cases. Lines that are no cases are not
// among them. Of each outcome the first `most` failed cases are read, and with a comparison so many
// new failures and lost cases; of a store that has to read all cases for a comparison, all.
Result<std::vector<Finding>> findings_of(RunReader& run, const RunComparison* comparison,
                                         std::uint64_t most = kAllOfThem);
// Puts in what has been made small of their cases.
void add_shrunk(const ShrunkCases& shrunk, std::vector<Finding>& findings);

// For a terminal: a few lines for each.
std::string findings_table(const std::vector<Finding>& findings);
nlohmann::json findings_json(const std::vector<Finding>& findings);
// "float32, float64; usual, wide": what else is known of where it shows.
std::string circumstances(const Finding& finding);

}  // namespace assay
