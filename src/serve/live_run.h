#pragma once

// What a page shows of a run, grown case by case: nothing is read twice.

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "report/findings.h"
#include "report/rejudge.h"
#include "report/run_report.h"
#include "serve/case_list.h"
#include "serve/stage_times.h"
#include "store/run_totals.h"
#include "store/store.h"

namespace assay {

// "float32" of the first tensor of a case; empty: it has none.
std::string_view first_dtype(std::string_view case_text);

class LiveRun {
 public:
  using Properties = std::map<std::string, std::string>;
  static Result<LiveRun> make(Properties properties);

  // Records are wanted of failed cases, and of some of the others for the time of the stages.
  void add(const FinishedCase& finished);
  void add(const InvalidLine& line);
  std::uint64_t cases() const { return cases_; }  // without lines that are no cases
  const Properties& properties() const { return properties_; }

  // All but the list of cases: {"outcomes": {…}, "apis": […], "dtypes": […], "findings": […],
  // "history": […], "stages": […], "sizes": […] and how a case is run again}. At most kShown rows
  // in each list: those with most failures.
  nlohmann::json json() const;
  RunTotals totals(std::string name) const;
  // Cases that failed or have a flag (flaky, weak …).
  CaseList& list() { return list_; }

  static constexpr std::size_t kShown = 2'000;
  // Of the cases that passed with a flag so many are listed: failed ones shall have room.
  static constexpr std::uint64_t kListedPassed = 20'000;

 private:
  explicit LiveRun(Judging judging, Properties properties)
      : judging_(std::move(judging)), properties_(std::move(properties)) {}

  struct OfApi {
    OutcomeCounts outcomes{};
    double seconds = 0;  // in slots
    StageTimes stages;
  };
  struct Minute {
    std::uint64_t cases = 0;
    std::uint64_t failed = 0;
  };

  nlohmann::json accommodated_json() const;
  nlohmann::json apis_json() const;
  nlohmann::json dtypes_json() const;
  nlohmann::json sizes_json() const;
  nlohmann::json found_json() const;
  nlohmann::json history_json() const;

  Judging judging_;
  Properties properties_;
  std::uint64_t cases_ = 0;
  OutcomeCounts outcomes_{};
  std::map<std::string, OfApi, std::less<>> apis_;
  std::map<std::string, OutcomeCounts, std::less<>> dtypes_;
  std::array<StageTimes, kSizes.size()> sizes_{};
  FindingsCollector findings_;
  std::int64_t last_ms_ = 0;                // when the last case finished
  std::map<std::int64_t, Minute> minutes_;  // since 1970, by the workers' clocks
  CaseList list_;
  std::uint64_t listed_passed_ = 0;
};

// The same of a run that nobody works on.
Result<LiveRun> live_run_of(RunReader& run);

}  // namespace assay
