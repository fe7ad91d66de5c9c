#pragma once

// Runs the script of an issue in the framework's interpreter (python/assay/issue.py).

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "lane/fork_server.h"
#include "report/issue_script.h"

namespace assay {

struct ScriptEnd {
  std::optional<int> code;  // -11: SIGSEGV; nothing: it still ran after a minute
  std::string output;       // its end
};

// `api` is the API of the issue: a script of one that no lane may call is not run.
Result<TracedCall> trace_call(const FrameworkConfig& config, const std::string& api,
                              const std::string& script);
Result<ScriptEnd> run_script(const FrameworkConfig& config, const std::string& api,
                             const std::string& script);

}  // namespace assay
