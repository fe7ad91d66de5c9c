#pragma once

// The data that a page shows of a run. It is built case by case, or from the sums of a store.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/findings.h"
#include "report/inputs.h"
#include "report/run_report.h"
#include "serve/case_list.h"
#include "store/run_totals.h"
#include "store/store.h"
#include "store/tally.h"

namespace assay {

class LiveRun {
 public:
  using Properties = std::map<std::string, std::string>;
  explicit LiveRun(Properties properties, const RunComparison* comparison = nullptr)
      : properties_(std::move(properties)),
        findings_(comparison, run_seed(properties_).value_or(0)) {}

  // Counts a case, and lists it if it failed or has a flag. Needs the records of failed cases, and
  // of some other cases for the times of stages.
  void add(const FinishedCase& finished);
  // Counts and lists an invalid line.
  void add(const InvalidLine& line);
  // Sets the sums of all cases. The caller then lists cases with list() instead of add().
  void set_tally(Tally tally) { tally_ = std::move(tally); }
  // Lists a case if it failed or has a flag, without counting it.
  void list(const FinishedCase& finished);
  // Counts a skipped case by its reason. add() does so itself.
  void count_skipped(const std::string& reason) { ++skipped_[reason]; }
  // Whether the list has room for passes with a flag.
  bool lists_passed() const { return listed_passed_ < kListedPassed; }
  // The number of finished cases, without invalid lines.
  std::uint64_t cases() const { return static_cast<std::uint64_t>(tally_.finished()); }
  // The number of failed cases and invalid lines.
  std::uint64_t failed() const;
  const Tally& tally() const { return tally_; }
  // Sets the number of failed cases that the caller does not list.
  void set_unlisted(std::uint64_t cases) { unlisted_ = cases; }
  const Properties& properties() const { return properties_; }

  // The findings so far. A page of a finished run sets them with the elements that it has read.
  std::vector<Finding> findings() const { return found_ ? *found_ : findings_.findings(); }
  void set_findings(std::vector<Finding> findings) { found_ = std::move(findings); }

  // The data of the page without the list of cases: {"outcomes": {…}, "apis": […], "dtypes": […],
  // "findings": […], "history": […], "stages": […], "sizes": […], "rerun": "…", …}. Each list has
  // at most kShown rows, those with the most failures.
  nlohmann::json json() const;
  // The run in a few numbers, under this name.
  RunTotals totals(std::string name) const;
  // The list of cases that failed or have a flag.
  CaseList& listed() { return list_; }

  static constexpr std::size_t kShown = 2'000;
  // Limit of passes with a flag in the list, so that failed cases have room.
  static constexpr std::uint64_t kListedPassed = 20'000;

 private:
  struct OfApi {
    OutcomeCounts outcomes{};
    std::map<std::string_view, OutcomeCounts> dtypes;
    StageTimes stages;
  };
  using Apis = std::map<std::string_view, OfApi>;

  Apis apis() const;  // without invalid lines
  OutcomeCounts outcomes() const;
  std::uint64_t invalid_lines() const;
  nlohmann::json known_deviations_json(const Apis& apis) const;
  nlohmann::json apis_json(Apis apis) const;
  nlohmann::json dtypes_json() const;
  nlohmann::json sizes_json() const;
  nlohmann::json found_json() const;
  nlohmann::json not_judged_json() const;
  nlohmann::json history_json() const;

  Properties properties_;
  Tally tally_;
  std::map<std::string, std::uint64_t> invalid_;  // lines by the name of what they call
  FindingsCollector findings_;
  std::optional<std::vector<Finding>> found_;
  CaseList list_;
  std::map<std::string, std::uint64_t> skipped_;  // cases by their reason
  std::uint64_t listed_passed_ = 0;
  std::uint64_t unlisted_ = 0;
};

// The data of a run that is not being written. Lists the first `most` cases of each outcome.
// `comparison` must outlive the result.
Result<LiveRun> live_run_of(RunReader& run, std::uint64_t most, const RunComparison* comparison);

}  // namespace assay
