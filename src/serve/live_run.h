#pragma once

// What a page shows of a run, grown case by case, or counted by its store: nothing is read twice.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "report/findings.h"
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
      : properties_(std::move(properties)), findings_(comparison) {}

  // Counts a case, and lists it where somebody may want to look at it. Records are wanted of failed
  // cases, and of some of the others for the time of the stages.
  void add(const FinishedCase& finished);
  void add(const InvalidLine& line);
  // Instead of counting: the sums of all cases, and each that is to be listed.
  void set_tally(Tally tally) { tally_ = std::move(tally); }
  void list(const FinishedCase& finished);
  // Whether cases that passed with a flag have room in the list.
  bool lists_passed() const { return listed_passed_ < kListedPassed; }
  std::uint64_t cases() const {  // without lines that are no cases
    return static_cast<std::uint64_t>(tally_.finished());
  }
  std::uint64_t failed() const;  // with them
  const Tally& tally() const { return tally_; }
  // So many failed cases are not listed.
  void set_unlisted(std::uint64_t cases) { unlisted_ = cases; }
  const Properties& properties() const { return properties_; }

  // All but the list of cases: {"outcomes": {…}, "apis": […], "dtypes": […], "findings": […],
  // "history": […], "stages": […], "sizes": […] and how a case is run again}. At most kShown rows
  // in each list: those with most failures.
  nlohmann::json json() const;
  RunTotals totals(std::string name) const;
  // Cases that failed or have a flag (flaky, weak …).
  CaseList& listed() { return list_; }

  static constexpr std::size_t kShown = 2'000;
  // Of the cases that passed with a flag so many are listed: failed ones shall have room.
  static constexpr std::uint64_t kListedPassed = 20'000;

 private:
  struct OfApi {
    OutcomeCounts outcomes{};
    std::int64_t took_us = 0;  // in slots
    StageTimes stages;
  };
  using Apis = std::map<std::string_view, OfApi>;

  Apis apis() const;
  OutcomeCounts outcomes() const;
  nlohmann::json accommodated_json(const Apis& apis) const;
  static nlohmann::json apis_json(const Apis& apis);
  nlohmann::json dtypes_json() const;
  nlohmann::json sizes_json() const;
  nlohmann::json found_json() const;
  nlohmann::json history_json() const;

  Properties properties_;
  Tally tally_;
  std::uint64_t invalid_ = 0;  // lines
  FindingsCollector findings_;
  CaseList list_;
  std::uint64_t listed_passed_ = 0;
  std::uint64_t unlisted_ = 0;
};

// The same of a run that nobody works on. The first `most` cases of each outcome are listed.
// `comparison` must outlive the result.
Result<LiveRun> live_run_of(RunReader& run, std::uint64_t most, const RunComparison* comparison);

}  // namespace assay
