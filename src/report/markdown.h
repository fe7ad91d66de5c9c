#pragma once

// A run as the job summary of a CI service, in GitHub's Markdown.

#include <string>
#include <vector>

#include "report/findings.h"
#include "report/run_report.h"
#include "report/run_verdict.h"

namespace assay {

struct MarkdownParts {
  const RunReport& report;
  const RunVerdict& verdict;
  const std::vector<Finding>& findings;  // shown without a comparison
  const RunComparison* comparison = nullptr;
  std::string folder;  // of the run, for commands; empty: in a database
};

// The verdict, then a table of the faults: new ones first, then those that grew, lost coverage and
// fixed ones. At most 60 lines, however large the run is.
std::string markdown_summary(const MarkdownParts& parts);

}  // namespace assay
