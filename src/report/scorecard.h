#pragma once

// Which operators of PyTorch's dispatcher a run judges, by dtype and group, for a vendor's back
// end.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "lane/fork_server.h"
#include "store/store.h"

namespace assay {

// {"operators": {"aten::add.Tensor": {"float32": "right"}}, "total": {"right": 1, …}, "dtypes",
// "groups": …}, as python/assay/scripts/scorecard.py makes it. `python` has the PyTorch whose list
// of operators counts. A usage error for a run without cases of PyTorch.
Result<nlohmann::json> scorecard_of(RunReader& run, const FrameworkConfig& python);
// The operators whose word for a dtype is another one: "aten::abs float32: right before, wrong
// now".
std::vector<std::string> changes_of(const nlohmann::json& before, const nlohmann::json& now);
// [name, a count for each of kScoreWords …]: in all, by dtype and by group.
nlohmann::json score_rows(const nlohmann::json& card);
// Both as a table of a terminal or of Markdown, with the operators that are wrong.
std::string score_table(const nlohmann::json& card, const std::vector<std::string>& changes,
                        bool markdown);

}  // namespace assay
