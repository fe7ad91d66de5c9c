#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "report/compare.h"
#include "report/run_verdict.h"
#include "store/store.h"

namespace assay {

inline constexpr std::uint64_t kFailuresOfPage = 20'000;

struct ReportPage {
  std::filesystem::path file;
  std::filesystem::path folder = {};       // of the run; empty: the run is in a database
  const RunComparison* against = nullptr;  // with a past run or baseline
  std::uint64_t most = kFailuresOfPage;    // listed cases of each failed outcome
  std::optional<RunVerdict> verdict = {};  // by the gate's flags; none: the page's own rule
  nlohmann::json scores = {};              // rows of the scorecard (score_rows()); null: none
};

// Writes the page of `assay serve` as one self-contained file, with scripts and logs of its
// findings.
Status write_report_page(RunReader& run, const ReportPage& page);

// The script, issue and links to logs of one finding of a run, as JSON for `assay serve`. `where`:
// a folder or an address; `digest`: of the finding.
Result<std::string> served_finding(const std::string& where, std::string_view digest);
// The end of a log in the folder of a run.
Result<std::string> served_log(const std::filesystem::path& folder, std::string_view name);

}  // namespace assay
