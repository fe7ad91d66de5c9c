#include "chain/script/script_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/text.h"
#include "chain/params/gpu_entry.h"
#include "chain/params/shell_words.h"
#include "chain/params/standard.h"
#include "chain/script/doubts.h"
#include "chain/script/rehearse.h"
#include "chain/shim/call.h"

namespace assay::chain::script {
namespace {

namespace fs = std::filesystem;

struct ScriptName {
  std::string_view mode;  // a mode, or a part of the params file's name
  std::string_view name;
};
constexpr std::array<ScriptName, 6> kByMode{
    {{"benchmark_train", "benchmark_train.sh"},
     {"cpp_infer", "test_inference_cpp.sh"},
     {"paddle2onnx_infer", "test_paddle2onnx.sh"},
     {"lite_infer", "test_lite_arm_cpu_cpp.sh"},
     {"pipeline_infer", "test_pipeline_infer_python.sh"},
     {"klquant_whole_infer", "test_ptq_inference_python.sh"}}};
constexpr std::array<ScriptName, 3> kByFile{{{"ptq", "test_ptq_inference_python.sh"},
                                             {"kl_quant", "test_ptq_inference_python.sh"},
                                             {"dy2static", "test_train_dy2static_python.sh"}}};

std::string_view usual_name(std::string_view file, std::string_view mode) {
  if (mode == "serving_infer") {
    return file.find("cpp") == std::string_view::npos ? "test_serving_infer_python.sh"
                                                      : "test_serving_infer_cpp.sh";
  }
  for (const ScriptName& known : kByMode) {
    if (mode == known.mode) return known.name;
  }
  for (const ScriptName& known : kByFile) {
    if (file.find(known.mode) != std::string_view::npos) return known.name;
  }
  return "test_train_inference_python.sh";
}

// The suites have scripts of their own for other devices: test_train_inference_python_npu.sh.
std::string script_name(const ScriptRequest& request) {
  const std::string file = fs::path(request.params_file).filename().string();
  const std::string_view usual = usual_name(file, request.mode);
  if (request.device.empty() || request.device == "gpu") return std::string(usual);
  return fmt::format("{}_{}.sh", usual.substr(0, usual.rfind('.')), request.device);
}

// The relative paths below a folder build/ that a script names.
std::set<std::string> built_in(std::string_view script) {
  constexpr std::string_view kOfPath =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
  constexpr std::string_view kFolder = "/build/";
  std::set<std::string> found;
  for (std::size_t at = 0; (at = script.find(kFolder, at)) != std::string_view::npos; ++at) {
    const std::size_t before = script.find_last_not_of(kOfPath, at);
    const std::size_t first = before == std::string_view::npos ? 0 : before + 1;
    const std::string_view path =
        script.substr(first, script.find_first_not_of(kOfPath, at) - first);
    const bool of_variable = first > 0 && (script[first - 1] == '}' || script[first - 1] == '$');
    if (!of_variable && !path.starts_with('/') && !path.ends_with('/')) found.emplace(path);
  }
  return found;
}

// Interpreters that a script starts by an absolute path, which no PATH replaces.
std::vector<std::string> unseen_interpreters(std::string_view script) {
  constexpr std::string_view kOfPath =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
  std::set<std::string> found;
  for (std::size_t at = 0; (at = script.find("/python", at)) != std::string_view::npos; ++at) {
    const std::size_t before = script.find_last_not_of(kOfPath, at);
    const std::size_t first = before == std::string_view::npos ? 0 : before + 1;
    const std::string_view path =
        script.substr(first, script.find_first_not_of(kOfPath, at) - first);
    const bool starts = first == 0 || std::string_view(" \t\n;&|(\"'").find(script[first - 1]) !=
                                          std::string_view::npos;
    const bool is_interpreter =
        path.find_first_not_of("0123456789.", path.rfind("/python") + 7) == std::string_view::npos;
    if (starts && path.starts_with('/') && is_interpreter) found.emplace(path);
  }
  return {found.begin(), found.end()};
}

std::vector<std::string> programs_of(const std::vector<CommandLine>& lines,
                                     std::string_view script) {
  std::set<std::string> programs = built_in(script);
  for (const CommandLine& line : lines) {
    const std::string& word = line.words.front();
    const bool built = word.find("build/") != std::string::npos && !word.starts_with('/');
    const bool by_name = line.key.ends_with("python") || line.key.ends_with("onnx");
    if (built || (by_name && word.find('/') == std::string::npos)) programs.insert(word);
  }
  return {programs.begin(), programs.end()};
}

std::string helpers_note(const std::vector<Command>& helpers) {
  std::map<std::string, int> counts;
  for (const Command& helper : helpers) ++counts[fs::path(helper.argv.front()).filename()];
  std::string text;
  for (const auto& [name, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  }
  return text;
}

// `python -c`, which runs without assay and which the rehearsal could not answer.
bool is_question(const Command& command) {
  return shim::is_errand(command.argv) && command.argv[1] == "-c";
}

void add_stages(plan::Plan& plan, const Rehearsal& rehearsal, const std::string& params_text) {
  Recogniser recogniser(params_text);
  for (const Command& command : rehearsal.commands) {
    if (!is_question(command)) {
      plan.stages.push_back(recogniser.take(command));
    } else if (command.argv.size() > 2) {
      plan.warnings.push_back(fmt::format(
          "the script asks {} -c '{}', and a rehearsal gives no answer: what depends on it may run "
          "otherwise",
          command.argv.front(), one_line(command.argv[2])));
    }
  }
  if (const std::string note = helpers_note(rehearsal.helpers); !note.empty()) {
    plan.warnings.push_back(fmt::format("the script also starts {}: a rehearsal runs none", note));
  }
}

// A file that the user names.
Result<std::string> text_of(const fs::path& project, const std::string& file) {
  auto text = read_file(project / file);
  if (!text) return usage_error(text.error().message);
  return text;
}

// An error if the standard script cannot run the file.
Status check_standard(const ScriptRequest& request) {
  ASSAY_TRY(const std::string params, text_of(request.project, request.params_file));
  if (!request.device.empty() && request.device != "gpu" && request.device != "cpu") {
    return usage_error(fmt::format("{}: the project has no {}, which --device {} needs",
                                   request.params_file, script_name(request), request.device));
  }
  const std::string_view usual =
      usual_name(fs::path(request.params_file).filename().string(), request.mode);
  if (usual != usual_name("", "") && usual != usual_name("", "benchmark_train")) {
    return usage_error(fmt::format("{}: the project has no {} for mode {}; --script names one",
                                   request.params_file, usual, request.mode));
  }
  const auto problems = params::standard_problems(params);
  if (problems.empty()) return {};
  return usage_error(params::describe(request.params_file, problems));
}

}  // namespace

namespace {

// The words of a script's name, without those that say nothing.
std::set<std::string> words_of(std::string_view name) {
  std::set<std::string> words;
  for (const std::string& word : split_at(name.substr(0, name.rfind('.')), '_')) {
    if (word != "test") words.insert(word == "inference" ? "infer" : word);
  }
  return words;
}

// Whether a script does what one with the usual name would do: it has that kind of work in its name
// and none of another kind or language, and it is for the same device.
bool is_like(const std::set<std::string>& words, const std::set<std::string>& usual,
             const std::string& kind) {
  constexpr std::array<std::string_view, 14> kWork{
      "serving",   "lite",  "paddle2onnx", "onnx",   "pipeline", "ptq", "dy2static",
      "benchmark", "train", "cpp",         "python", "js",       "amp", "pact"};
  constexpr std::array<const char*, 4> kDevices{"npu", "xpu", "mlu", "gcu"};
  return words.contains(kind) &&
         std::ranges::none_of(words,
                              [&](const std::string& word) {
                                return std::ranges::find(kWork, word) != kWork.end() &&
                                       !usual.contains(word);
                              }) &&
         std::ranges::all_of(kDevices, [&](const char* device) {
           return words.contains(device) == usual.contains(device);
         });
}

// The only script of the folder that is like the usual one; "" if there is none, or several.
std::string similar_script(const fs::path& folder, const std::string& name, bool trains) {
  const std::set<std::string> usual = words_of(name);
  std::string kind = "infer";
  for (const char* known :
       {"serving", "lite", "paddle2onnx", "pipeline", "ptq", "dy2static", "benchmark", "train"}) {
    if (kind == "infer" && usual.contains(known)) kind = known;
  }
  if (kind == "train" && !trains) kind = "infer";
  std::string found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string other = entry.path().filename().string();
    if (!other.ends_with(".sh") || !is_like(words_of(other), usual, kind)) continue;
    if (!found.empty()) return {};
    found = other;
  }
  return found;
}

}  // namespace

std::string find_script(const ScriptRequest& request) {
  if (!request.script.empty()) return request.script;
  const fs::path file(request.params_file);
  if (file.extension() == ".sh") return request.params_file;
  const std::string name = script_name(request);
  std::vector<fs::path> folders;
  for (fs::path folder = file.parent_path(); !folder.empty() && folder.has_relative_path();
       folder = folder.parent_path()) {
    folders.push_back(folder);
  }
  folders.emplace_back("test_tipc");
  std::error_code error;
  for (const fs::path& folder : folders) {
    if (fs::exists(request.project / folder / name, error)) return (folder / name).string();
  }
  const bool trains = file.filename().string().find("train") != std::string::npos;
  for (const fs::path& folder : folders) {
    const std::string similar = similar_script(request.project / folder, name, trains);
    if (!similar.empty()) return (folder / similar).string();
  }
  return {};
}

Result<Script> read_script(const ScriptRequest& request) {
  Script script;
  script.path = find_script(request);
  script.standard = script.path.empty();
  std::string text;
  const std::string name = script_name(request);
  if (!script.standard && request.script.empty() && script.path != request.params_file &&
      fs::path(script.path).filename() != name) {
    script.warnings.push_back(
        fmt::format("no script {} found: {} is used; --script names another", name, script.path));
  }
  if (script.standard) {
    script.path = kStandard;
    ASSAY_CHECK(check_standard(request));
  } else {
    ASSAY_TRY(text, text_of(request.project, script.path));
  }
  for (const std::string& path : unseen_interpreters(text)) {
    script.warnings.push_back(
        fmt::format("the script starts {} by its path: assay does not see what it runs", path));
  }
  script.launches = script.path == request.params_file;
  script.mode = request.mode;
  script.python = request.python;
  const std::string root = request.output_root.empty() ? "./test_tipc/assay" : request.output_root;
  const std::string stem = fs::path(request.params_file).stem().string();
  if (script.launches) {
    script.programs = programs_of({}, text);
    script.folder = fmt::format("{}/{}/{}", root, stem, request.mode);
    return script;
  }
  ASSAY_TRY(script.params, text_of(request.project, request.params_file));
  if (!request.machines.empty()) {
    script.params = params::on_machines(script.params, request.machines);
    script.changed = true;
  }
  if (!request.gpus.empty()) {
    ASSAY_TRY(script.params, params::on_gpus(script.params, request.gpus));
    script.changed = true;
  }
  const std::string python = value_of(command_lines(script.params), "python");
  if (python.find('/') != std::string::npos) {  // PATH does not decide there
    if (script.python.empty()) script.python = python;
    const std::size_t at = script.params.find(python);
    script.params.replace(at, python.size(), "python");
    script.changed = true;
  }
  const std::vector<CommandLine> lines = command_lines(script.params);
  script.programs = programs_of(lines, text);
  script.model = value_of(lines, "model_name");
  ASSAY_CHECK(params::check_model(script.model));
  script.checkpoint = value_of(lines, "train_model_name");
  script.arguments = {request.mode};
  if (!request.third.empty() || script.standard) script.arguments.push_back(request.third);
  if (script.standard && request.device == "cpu") script.arguments.emplace_back("cpu");
  script.results = fmt::format("./test_tipc/output/{}/{}", script.model, request.mode);
  script.folder = fmt::format("{}/{}/{}/{}", root, script.model, stem, request.mode);
  return script;
}

Result<plan::Plan> rehearsed_plan(const Script& script, const ScriptRequest& request) {
  RehearsalOptions options;
  options.command = {"bash", script.path};
  if (!script.launches) {
    options.command.push_back(request.params_file);
    if (script.changed) options.replaced = {request.params_file, script.params};
  }
  options.command.insert(options.command.end(), script.arguments.begin(), script.arguments.end());
  options.project = request.project.string();
  options.shim = request.shim;
  options.trusted = request.trusted;
  options.launches = script.launches;
  options.standard = script.standard;
  options.programs = script.programs;
  if (request.makes_checkpoint && !script.checkpoint.empty() && script.checkpoint != "null") {
    options.makes = {script.checkpoint, script.checkpoint + ".pdparams"};
  }
  ASSAY_TRY(const Rehearsal rehearsal, rehearse(options));
  if (std::ranges::all_of(rehearsal.commands, is_question)) {
    return usage_error(
        fmt::format("{} starts no command in mode {} (exit code {}); it printed:\n{}", script.path,
                    request.mode, rehearsal.code, trimmed(rehearsal.printed)));
  }
  plan::Plan plan = bare_plan(script);
  add_stages(plan, rehearsal, script.params);
  for (std::string& loss : losses_of(plan, script.params)) plan.warnings.push_back(std::move(loss));
  for (plan::Stage& stage : plan.stages) {
    if (!script.python.empty() && shim::is_python(stage.argv.front()))
      stage.argv.front() = script.python;
    if (stage.log.empty()) stage.log = fmt::format("{}/{}.log", plan.folder, stage.name);
  }
  return plan;
}

std::string shim_beside(const std::string& assay) {
  return std::filesystem::path(assay).replace_filename("assay-shim").string();
}

plan::Plan bare_plan(const Script& script) {
  plan::Plan plan;
  plan.model = script.model;
  plan.mode = script.mode;
  plan.folder = script.folder;
  plan.warnings = script.warnings;
  return plan;
}

}  // namespace assay::chain::script
