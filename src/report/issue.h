#pragma once

// Writes a finding as a text for the framework's issue tracker: what is wrong, a script that shows
// it with the framework alone, what is right, and how that is known.

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "report/findings.h"
#include "report/repro.h"

namespace assay {

struct Issue {
  std::string title;
  std::string text;    // Markdown, with the script
  std::string script;  // empty: see `why`
  std::string why;     // why there is no script
};

// The issue of a finding. `shown`: its smallest known case.
Result<Issue> write_issue(const std::map<std::string, std::string>& properties,
                          const Finding& finding, const FoundCase& shown);

}  // namespace assay
