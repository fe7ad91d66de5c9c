#pragma once

// What decides whether a run is good enough: flags that `assay api` and `assay report` share.

#include <CLI/App.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "report/compare.h"
#include "report/run_report.h"
#include "report/run_verdict.h"

namespace assay {

struct GateOptions {
  std::string against;  // a run's folder, a database, a baseline file or `known`
  std::string fail_on;  // new, any, none; empty: new with --against, or else `usual`
  bool strict = false;
  std::string allow;  // self_only, or empty
};

void add_gate_options(CLI::App& app, GateOptions& options, const std::string& usual);

class Gate {
 public:
  // Reads what --against names, so that errors in it are reported before anything runs. Which lists
  // of known faults `known` stands for depends on the run; compare() reads them.
  static Result<Gate> open(const GateOptions& options, const std::string& usual);

  // Nothing where nobody asked for it.
  Result<std::optional<RunComparison>> compare(RunReader& run) const;
  // By what --fail-on counts; with `none`, as if it were not given.
  RunVerdict verdict(const RunReport& report, const std::optional<RunComparison>& comparison) const;
  // The exit code for this verdict. kNothingJudged: no case got a verdict, or coverage was lost.
  int code(const RunVerdict& verdict) const;

 private:
  std::string fail_on_;
  bool strict_ = false;
  bool self_only_ = false;
  std::optional<PastRun> past_;
  std::filesystem::path shipped_;  // folder of the shipped lists; empty: --against=known not given
};

}  // namespace assay
