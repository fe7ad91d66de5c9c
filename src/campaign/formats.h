#pragma once

// A campaign's findings for people and for CI servers.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "campaign/results.h"

namespace assay::campaign {

// "498 passed, 2 failed: 1 new failure, 1 known".
std::string summary_line(const Findings& findings);
// Models × kinds of stages, with the failures below. `all` shows models that passed, too.
std::string matrix_text(const Findings& findings, bool all);
// A job summary in GitHub's Markdown.
std::string markdown(const std::string& name, const Findings& findings);
// JUnit XML: a test suite per model with a test case per stage. Known failures are skipped.
std::string junit(const std::string& name, const Findings& findings);
nlohmann::json json_report(const std::string& name, const Findings& findings);
// A page with the matrix and links to the logs and pages of models, which lie beside it.
Result<std::string> html(const std::string& name, const Findings& findings);

}  // namespace assay::campaign
