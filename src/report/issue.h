#pragma once

// A finding as a text for the issue tracker of the framework whose lane failed: what is wrong, a
// script that shows it with that framework alone, what is right and how that is known.

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "report/findings.h"
#include "report/issue_script.h"
#include "report/repro.h"

namespace assay {

struct Issue {
  FaultyLane lane;
  std::string title;
  std::string text;    // Markdown, with the script
  std::string script;  // empty: see `why`
  std::string why;     // why there is no script
};

// The issue of a finding. `shown`: its smallest known case.
Result<Issue> write_issue(const std::map<std::string, std::string>& properties,
                          const Finding& finding, const FoundCase& shown, const Tracer& tracer);

}  // namespace assay
