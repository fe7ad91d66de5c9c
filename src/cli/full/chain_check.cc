#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/process.h"
#include "base/terminal.h"
#include "base/text.h"
#include "chain/params/standard.h"
#include "chain/plan/stage_file.h"
#include "chain/script/doubts.h"
#include "chain/script/script_plan.h"
#include "cli/full/verbs.h"

namespace assay::cli::full {

using namespace chain;

namespace {

struct CheckArguments {
  std::vector<std::string> files;
  std::string mode;  // to rehearse the files' scripts in; "": by the files' names
  bool trusted = false;
};

// The mode in which a file is rehearsed, by its name.
std::string mode_of(const std::string& file) {
  struct Known {
    std::string_view word;
    std::string_view mode;
  };
  constexpr std::array<Known, 8> kModes{{{"serving", "serving_infer"},
                                         {"paddle2onnx", "paddle2onnx_infer"},
                                         {"lite_arm", "lite_infer"},
                                         {"ptq", "whole_infer"},
                                         {"kl_quant", "whole_infer"},
                                         {"pipeline", "pipeline_infer"},
                                         {"cpp", "cpp_infer"},
                                         {".sh", "benchmark_train"}}};
  const std::string name = std::filesystem::path(file).filename().string();
  for (const Known& known : kModes) {
    if (name.find(known.word) != std::string::npos) return std::string(known.mode);
  }
  return "lite_train_lite_infer";
}

// What is told of a file.
struct Checked {
  bool good = false;
  std::string script;
  std::vector<std::string> told;
};

// Whether a script reads lines by number beyond the short layout and short of the long one: it has
// a layout of its own.
bool has_own_layout(std::string_view script) {
  constexpr std::string_view kLine = "lines[";
  constexpr int kShort = 32;
  constexpr int kLong = 51;
  int lines = 0;
  for (std::size_t at = script.find(kLine); at != script.npos; at = script.find(kLine, at)) {
    script.remove_prefix(at + kLine.size());
    at = 0;
    int index = 0;
    std::from_chars(script.data(), script.data() + script.size(), index);
    lines = std::max(lines, index + 1);
  }
  return lines > kShort && lines < kLong;
}

// Checks a file by what its script starts.
Checked checked(const script::ScriptRequest& request) {
  Checked checked;
  const auto script = script::read_script(request);
  if (!script) return {false, "", {script.error().message}};
  checked.script = script->path;
  if (script->standard) checked.told.emplace_back("no script found: the standard script is used");
  const auto plan = script::rehearsed_plan(*script, request);
  std::vector<std::string> doubts =
      plan ? script::doubts_about(*plan) : std::vector<std::string>{plan.error().message};
  const auto faults = params::likely_problems(script->params);
  if (!faults.empty() && !has_own_layout(read_file(script->path).value_or(""))) {
    doubts.push_back(params::describe(request.params_file, faults));
  }
  checked.good = doubts.empty();
  checked.told.insert(checked.told.end(), doubts.begin(), doubts.end());
  if (plan) {
    for (const std::string& warning : plan->warnings) checked.told.push_back("warning: " + warning);
  }
  return checked;
}

Result<int> check(const CheckArguments& arguments) {
  script::ScriptRequest request;
  ASSAY_TRY(const std::string self, own_executable());
  request.shim = script::shim_beside(self);
  request.trusted = arguments.trusted;
  std::size_t good = 0;
  for (const std::string& file : arguments.files) {
    if (file.ends_with(".toml")) {
      ASSAY_TRY(const plan::Plan plan, plan::read_stage_file(file, "", ""));
      show(stdout, "{}: good ({})\n", file, count_of(plan.stages.size(), "stage"));
      ++good;
      continue;
    }
    request.params_file = file;
    request.mode = arguments.mode.empty() ? mode_of(file) : arguments.mode;
    const Checked one = checked(request);
    for (const std::string& told : one.told) {
      show(stderr, "{}{}\n", told.starts_with(file + ":") ? "" : file + ": ", told);
    }
    if (!one.good) continue;
    ++good;
    show(stdout, "{}: good ({}, mode {})\n", file, one.script, request.mode);
  }
  if (arguments.files.size() > 1) {
    show(stdout, "{} good, {} refused\n", good, arguments.files.size() - good);
  }
  return good == arguments.files.size() ? kAllGood : kUsage;
}

}  // namespace

Verb add_chain_check(CLI::App& chain) {
  CLI::App* app = chain.add_subcommand("check", "Check params files without running them");
  const auto arguments = std::make_shared<CheckArguments>();
  app->add_option("FILE", arguments->files, "Params files, or launching scripts (.sh)")->required();
  app->add_option("--rehearse", arguments->mode,
                  "Mode in which the files' scripts are rehearsed (default: by the files' names)");
  app->add_flag("--trust-script", arguments->trusted,
                "Rehearse scripts also where the kernel cannot shut them in");
  return {app, [arguments] { return check(*arguments); }};
}

}  // namespace assay::cli::full
