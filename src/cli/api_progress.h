#pragma once

// What `assay api` tells while it runs: a status line that is rewritten on a terminal, and a few
// lines for every failed verdict.

#include <cstdint>
#include <map>
#include <string>

#include "engine/engine.h"
#include "report/run_report.h"

namespace assay {

class ApiProgress {
 public:
  // `quiet`: nothing but the summary. `with_status`: how far the run is, too.
  ApiProgress(const RunConfig& config, bool quiet, bool with_status = true);

  // Calls back into this object, which must outlive it.
  RunObserver observer();
  void note(const std::string& line);
  void finish(const RunSummary& summary, const RunReport& report);

 private:
  void planned(const Totals& totals);
  void finished(const FinishedCase& finished, const Totals& totals);
  void status(const Totals& totals);
  void print_line(const std::string& line);

  const RunConfig& config_;
  bool quiet_;
  bool with_status_;
  bool terminal_;
  std::map<std::string, std::string> settings_;
  std::int64_t started_ns_;
  std::int64_t status_ns_ = 0;
  std::uint64_t shown_failures_ = 0;
};

}  // namespace assay
