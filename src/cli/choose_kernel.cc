#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "cli/api_parts.h"
#include "report/scripts.h"

namespace assay {
namespace {

// FILE.py:NAME with an absolute path.
Result<std::string> place_of(const std::string& flag, const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size()) {
    return usage_error(fmt::format("{} takes FILE.py:NAME, not {}", flag, text));
  }
  std::error_code error;
  const std::filesystem::path file = text.substr(0, colon);
  if (!std::filesystem::is_regular_file(file, error)) {
    return usage_error(fmt::format("{}: there is no file {}", flag, file.string()));
  }
  return std::filesystem::canonical(file, error).string() + text.substr(colon);
}

Result<nlohmann::json> rules_of(const std::string& text) {
  nlohmann::json rules = nlohmann::json::object();
  for (const std::string& each : split_at(text, ';')) {
    if (trimmed(each).empty()) continue;
    const std::size_t equals = each.find('=');
    if (equals == std::string::npos) {
      return usage_error(fmt::format("a rule is PARAMETER=RULE, not {}", each));
    }
    rules[std::string(trimmed(each.substr(0, equals)))] = trimmed(each.substr(equals + 1));
  }
  return rules;
}

}  // namespace

Status choose_kernel(const ApiOptions& options, RunConfig& config,
                     std::vector<std::string>& notes) {
  const KernelOptions& kernel = options.kernel;
  if (kernel.function.empty()) return {};
  if (config.test.framework.name != kTablesFramework) {
    return usage_error("a kernel runs in a lane of PyTorch: name one with --test-lane");
  }
  nlohmann::json request = {{"do", "kernel"},
                            {"cases", config.sources.configs},
                            {"reference", ""},
                            {"changes", nlohmann::json::array()},
                            {"shapes", kernel.larger}};
  ASSAY_TRY(request["kernel"], place_of("the kernel", kernel.function));
  if (!kernel.reference.empty()) {
    ASSAY_TRY(request["reference"], place_of("the reference", kernel.reference));
  }
  for (const std::string& name : split_at(kernel.changes, ',')) {
    if (!trimmed(name).empty()) request["changes"].push_back(trimmed(name));
  }
  ASSAY_TRY(request["rules"], rules_of(kernel.rules));
  std::string device = config.test.device;
  if (device.starts_with("gpu")) device = "cuda" + device.substr(3);
  request["device"] = options.test_cpu || options.num_gpus == 0 ? "cpu" : device;
  ASSAY_TRY(const auto answers, ask_scripts(config.test.framework, {request}));
  const nlohmann::json& answer = answers.front();
  if (answer.contains("error")) return usage_error(text_of(answer, "error"));
  for (const nlohmann::json& text : answer["cases"]) config.sources.configs.push_back(text);
  nlohmann::json facts = answer["facts"];
  if (kernel.gradients) facts["gradients"] = true;
  if (!facts["gradients"].get<bool>() && kernel.changes.empty()) {
    notes.emplace_back(
        "the kernel has no gradient: only its results are judged (--gradients makes that a "
        "fault)");
  }
  for (LaneConfig* lane : {&config.test, &config.reference}) {
    facts["checks"] = kernel.checks && lane == &config.test;
    std::vector<std::string>& variables = lane->framework.environment;
    variables.push_back("ASSAY_KERNEL=" + text_of(request, "kernel"));
    variables.push_back("ASSAY_KERNEL_FACTS=" + json_text(facts));
  }
  if (!kernel.reference.empty()) {
    config.reference.framework.environment.push_back("ASSAY_KERNEL_REFERENCE=" +
                                                     text_of(request, "reference"));
  }
  return {};
}

}  // namespace assay
