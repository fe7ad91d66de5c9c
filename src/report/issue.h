#pragma once

// A finding as a text for the framework's issue tracker: what is wrong, a script that shows it with
// the framework alone, what is right and how that is known.

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
  std::string text;    // Markdown, the script among it
  std::string script;  // empty: there is none, `why` says why
  std::string why;
};

// `shown` is the case that shows the finding: the smallest one known.
Result<Issue> write_issue(const std::map<std::string, std::string>& properties,
                          const Finding& finding, const FoundCase& shown);

}  // namespace assay
