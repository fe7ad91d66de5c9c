#pragma once

// The output of `assay api` while it runs: a status line, which a terminal shows in place, and a
// few lines for each failed verdict.

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "base/terminal.h"
#include "engine/engine.h"
#include "report/compare.h"
#include "report/run_report.h"

namespace assay {

class ApiProgress {
 public:
  // `quiet`: only the summary. `with_status`: the status line, too. `verbose`: each case.
  ApiProgress(const RunConfig& config, bool quiet, bool with_status = true, bool verbose = false);

  // The observer refers to this object, which must outlive it.
  RunObserver observer();
  void note(const std::string& line);
  // With a comparison, names a case that is new or worse to be run again, never a known one.
  void finish(const RunSummary& summary, const RunReport& report,
              const RunComparison* compared = nullptr);
  const Terminal& terminal() const { return terminal_; }

 private:
  void planned(const Totals& totals);
  void finished(const FinishedCase& finished, const Totals& totals);
  void status(const Totals& totals);
  void print_line(const std::string& line);

  const RunConfig& config_;
  bool quiet_;
  bool with_status_;
  bool verbose_;
  Terminal terminal_;
  std::map<std::string, std::string> settings_;
  std::int64_t started_ns_;
  std::int64_t planned_ns_ = 0;  // when the frameworks were imported
  std::string first_failure_;    // text of the case
  std::string first_rejected_;   // likewise, with the message
  std::int64_t status_ns_ = 0;
  std::uint64_t shown_failures_ = 0;
  std::set<std::string> invalid_;  // messages of invalid cases: each is shown once
};

}  // namespace assay
