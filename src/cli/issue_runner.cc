#include "cli/issue_runner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/private_folder.h"
#include "base/process.h"

namespace assay {
namespace {

constexpr int kRequestVersion = 1;
constexpr std::chrono::seconds kScriptLimit{90};
constexpr std::chrono::seconds kWholeLimit{180};

// Asks assay.issue; `what` is what it does.
Result<nlohmann::json> ask(const FrameworkConfig& config, const std::string& api,
                           const std::string& what, const std::string& script) {
  ASSAY_TRY(const LanePackage package, LanePackage::find());
  ASSAY_TRY(const PrivateFolder folder, PrivateFolder::make("issue"));
  const std::filesystem::path file = folder.path() / "script.py";
  ASSAY_CHECK(write_file(file, script));
  const nlohmann::json request{{"v", kRequestVersion},
                               {"do", what},
                               {"api", api},
                               {"script", file.string()},
                               {"limit", kScriptLimit.count()}};
  ASSAY_CHECK(write_file(folder.path() / "request", request.dump()));
  const Fd in(::open((folder.path() / "request").c_str(), O_RDONLY | O_CLOEXEC));
  if (!in) return errno_error("cannot read the request to assay.issue");
  ASSAY_TRY(const Fd out, open_for_append(folder.path() / "answer"));
  ASSAY_TRY(const Fd log, open_for_append(folder.path() / "log"));
  SpawnOptions options = module_command(config, package, "assay.issue");
  options.fds = {{in.get(), 0}, {out.get(), 1}, {log.get(), 2}};
  ASSAY_TRY(Process process, Process::spawn(options));
  ASSAY_TRY(const ExitStatus status, process.wait_at_most(kWholeLimit));
  if (!status.ok()) {
    return fail(fmt::format("{} could not run it: {}", config.python, status.describe()));
  }
  ASSAY_TRY(const std::string text, read_file(folder.path() / "answer"));
  nlohmann::json answer = parse_json(text);
  if (!answer.is_object() || answer.value("v", 0) != kRequestVersion) {
    return fail("assay.issue gave no answer");
  }
  if (const auto error = answer.find("error"); error != answer.end()) {
    return fail(error->is_string() ? error->get<std::string>() : error->dump());
  }
  return answer;
}

}  // namespace

Result<TracedCall> trace_call(const FrameworkConfig& config, const std::string& api,
                              const std::string& script) {
  ASSAY_TRY(const nlohmann::json answer, ask(config, api, "trace", script));
  try {
    return TracedCall{answer.at("lines").get<std::vector<std::string>>(),
                      answer.at("outputs").get<std::vector<std::string>>()};
  } catch (const nlohmann::json::exception& error) {
    return fail(fmt::format("assay.issue gave another answer: {}", error.what()));
  }
}

Result<ScriptEnd> run_script(const FrameworkConfig& config, const std::string& api,
                             const std::string& script) {
  ASSAY_TRY(const nlohmann::json answer, ask(config, api, "run", script));
  try {
    ScriptEnd end;
    if (!answer.at("code").is_null()) end.code = answer.at("code").get<int>();
    end.output = answer.at("output").get<std::string>();
    return end;
  } catch (const nlohmann::json::exception& error) {
    return fail(fmt::format("assay.issue gave another answer: {}", error.what()));
  }
}

}  // namespace assay
