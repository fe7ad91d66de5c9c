#pragma once

// What reports ask of a store that looks up, so that a run of many millions is not read through.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/run_totals.h"
#include "store/store.h"

namespace assay {

// A case as it was before: in another run, or in a list of what is known.
struct KnownCase {
  std::uint64_t id = 0;
  Outcome outcome = Outcome::pass;
  bool flaky = false;
};

// A finished case beside what was known of it.
struct DifferentCase {
  FinishedCase now;
  std::optional<KnownCase> before;              // none: the case was not there
  std::span<const std::uint8_t> record_before;  // wire::Record; may be empty
};

class QuickReader {
 public:
  using VisitFinished = std::function<Status(const FinishedCase&)>;
  using VisitDifferent = std::function<Status(const DifferentCase&)>;

  QuickReader() = default;
  QuickReader(const QuickReader&) = delete;
  QuickReader& operator=(const QuickReader&) = delete;
  virtual ~QuickReader() = default;

  // Finished cases with these ids, in the order in which they finished.
  virtual Status each_with_id(std::span<const std::uint64_t> ids, const VisitFinished& visit) = 0;

  // Cases that passed with a flag, the first `most` of them.
  virtual Status each_flagged_pass(std::uint64_t most, const VisitFinished& visit) = 0;

  // Finished cases that are otherwise in `past` (another outcome, flaky in one of them only, not
  // there), and those that took kExpensiveUs (store/learned_costs.h) and more. False, and nothing
  // was shown: the two are not in one database, or may not be read together.
  virtual Result<bool> each_different(QuickReader& past, const VisitDifferent& visit) = 0;
  // Likewise with a list of what did not pass or was flaky. A case that is not in it is shown with
  // nothing before it if it did not pass or was flaky.
  virtual Status each_different(std::span<const KnownCase> past, const VisitDifferent& visit) = 0;
  // How many cases have finished in both, after each_different() with the same; nullopt: there are
  // too many to be counted.
  virtual Result<std::optional<std::uint64_t>> finished_in_both(QuickReader& past) = 0;
  virtual Result<std::uint64_t> finished_in_both(std::span<const KnownCase> past) = 0;

  // The other runs of the database; of one without sums that has many results a sample is counted.
  virtual Result<std::vector<RunTotals>> other_runs() = 0;
  // What this run is called among them.
  virtual Result<std::string> run_name() = 0;
};

}  // namespace assay
