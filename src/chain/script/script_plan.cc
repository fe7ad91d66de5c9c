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
#include "chain/params/params_text.h"
#include "chain/params/words.h"

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

std::string_view script_name(std::string_view file, std::string_view mode) {
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

struct KindWord {
  std::string_view word;
  plan::StageKind kind;
};
// The first word that the key or the program's path contains decides.
constexpr std::array<KindWord, 16> kKindWords{{{"eval", plan::StageKind::eval},
                                               {"export", plan::StageKind::export_model},
                                               {"onnx", plan::StageKind::convert},
                                               {"quant", plan::StageKind::convert},
                                               {"trans_model", plan::StageKind::convert},
                                               {"convert", plan::StageKind::convert},
                                               {"opt", plan::StageKind::convert},
                                               {"server", plan::StageKind::server},
                                               {"web_service", plan::StageKind::server},
                                               {"infer", plan::StageKind::infer},
                                               {"predict", plan::StageKind::infer},
                                               {"client", plan::StageKind::infer},
                                               {"build/", plan::StageKind::infer},
                                               {"train", plan::StageKind::train},
                                               {"main", plan::StageKind::train},
                                               {"val", plan::StageKind::eval}}};

std::optional<plan::StageKind> kind_of(std::string_view text) {
  for (const KindWord& known : kKindWords) {
    if (text.find(known.word) != std::string_view::npos) return known.kind;
  }
  return std::nullopt;
}

bool is_interpreter(std::string_view word) {
  return fs::path(word).filename().string().starts_with("python");
}

// The words of a command after the interpreter and the launcher, and what the launcher was told.
struct Program {
  std::vector<std::string> words;
  std::string gpus;
  std::string hosts;
};

Program program_of(const std::vector<std::string>& argv) {
  Program program;
  std::size_t first = is_interpreter(argv.front()) ? 1 : 0;
  const auto word = [&](std::size_t i) {
    return i < argv.size() ? std::string_view(argv[i]) : std::string_view();
  };
  while (first > 0 && word(first).starts_with('-') && word(first) != "-m") ++first;  // -u
  if (word(first) == "-m" && word(first + 1).starts_with("paddle.distributed")) {
    first += 2;
    while (word(first).starts_with('-')) {
      std::string_view option = word(first++);
      std::string_view value;
      if (const std::size_t equals = option.find('='); equals != std::string_view::npos) {
        value = option.substr(equals + 1);
        option = option.substr(0, equals);
      } else if (!word(first).starts_with('-') && !word(first).ends_with(".py")) {
        value = word(first++);
      }
      if (option.ends_with("gpus") || option.ends_with("devices")) program.gpus = value;
      if (option.ends_with("ips")) program.hosts = value;
    }
  }
  program.words.assign(argv.begin() + static_cast<std::ptrdiff_t>(first), argv.end());
  return program;
}

// A line of the params file whose value may be a command.
struct Line {
  std::string key;
  std::vector<std::string> words;
};

std::vector<Line> command_lines(const std::string& text) {
  std::vector<Line> lines;
  for (const auto& section : params::read_params_text(text, params::Separator::colon).sections) {
    for (const auto& line : section.lines) {
      auto words = params::split_words(line.value);
      if (words && !words->empty()) lines.push_back({line.key, std::move(*words)});
    }
  }
  return lines;
}

std::string value_of(const std::vector<Line>& lines, std::string_view key) {
  for (const Line& line : lines) {
    if (line.key == key) return line.words.front();
  }
  return {};
}

bool looks_like_command(const Line& line) {
  return line.words.front().find('.') != std::string::npos || line.words.size() > 1;
}

std::string key_of(const std::vector<std::string>& words, const std::vector<Line>& lines) {
  const Line* best = nullptr;
  for (const Line& line : lines) {
    const bool begins = line.words.size() <= words.size() &&
                        std::equal(line.words.begin(), line.words.end(), words.begin());
    if (!begins || !looks_like_command(line)) continue;
    if (best == nullptr || line.words.size() > best->words.size()) best = &line;
  }
  return best == nullptr ? "" : best->key;
}

// What the name of a stage starts with: the key, or the program without folder and extension.
std::string base_name(const std::string& key, const std::vector<std::string>& words) {
  if (!key.empty()) return key;
  if (words.empty()) return "command";
  return fs::path(words.front()).stem().string();
}

std::string device_of(const Command& command, const Program& program) {
  constexpr std::string_view kVisible = "CUDA_VISIBLE_DEVICES=";
  std::string gpus = program.gpus;
  for (const std::string& entry : command.environment) {
    if (gpus.empty() && entry.starts_with(kVisible)) gpus = entry.substr(kVisible.size());
  }
  return gpus.empty() ? "cpu" : "gpu " + gpus;
}

// The stages that one needs: the bash itself goes on whatever fails.
std::vector<std::size_t> needs_of(plan::StageKind kind, const std::vector<plan::Stage>& earlier) {
  using enum plan::StageKind;
  const auto makes = [&](plan::StageKind made) {
    if (kind == train || kind == prepare) return false;
    return made == train || (kind != eval && (made == export_model || made == convert)) ||
           (kind == infer && made == server);
  };
  for (std::size_t i = earlier.size(); i-- > 0;) {
    if (makes(earlier[i].kind)) return {i};
  }
  return {};
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

std::vector<std::string> programs_of(const std::vector<Line>& lines, std::string_view script) {
  std::set<std::string> programs = built_in(script);
  for (const Line& line : lines) {
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

plan::Plan plan_of(const Rehearsal& rehearsal, const std::string& params_text) {
  plan::Plan plan;
  plan.stages = recognised(rehearsal.commands, params_text);
  if (const std::string note = helpers_note(rehearsal.helpers); !note.empty()) {
    plan.warnings.push_back(fmt::format("the script also starts {}: a rehearsal runs none", note));
  }
  return plan;
}

// A file that the user names.
Result<std::string> text_of(const std::string& project, const std::string& file) {
  auto text = read_file(fs::path(project) / file);
  if (!text) return usage_error(text.error().message);
  return text;
}

}  // namespace

std::string find_script(const std::string& project, const std::string& params_file,
                        const std::string& mode) {
  const fs::path file(params_file);
  if (file.extension() == ".sh") return params_file;
  const std::string_view name = script_name(file.filename().string(), mode);
  std::vector<fs::path> folders;
  for (fs::path folder = file.parent_path(); !folder.empty() && folder.has_relative_path();
       folder = folder.parent_path()) {
    folders.push_back(folder);
  }
  folders.emplace_back("test_tipc");
  std::error_code error;
  for (const fs::path& folder : folders) {
    if (fs::exists(fs::path(project) / folder / name, error)) return (folder / name).string();
  }
  return {};
}

std::vector<plan::Stage> recognised(const std::vector<Command>& commands,
                                    const std::string& params_text) {
  const std::vector<Line> lines = command_lines(params_text);
  std::vector<plan::Stage> stages;
  std::map<std::string, int> named;
  for (const Command& command : commands) {
    const Program program = program_of(command.argv);
    const std::string key = key_of(program.words, lines);
    plan::Stage stage;
    stage.index = stages.size();
    stage.kind = kind_of(key).value_or(
        kind_of(program.words.empty() ? "" : program.words.front())
            .value_or(kind_of(command.argv.front()).value_or(plan::StageKind::prepare)));
    stage.name = base_name(key, program.words);
    if (const int count = ++named[stage.name]; count > 1) {
      stage.name += fmt::format("_{}", count);
    }
    stage.argv = command.argv;
    stage.command = shell_line(command.argv);
    stage.environment = command.environment;
    stage.directory = command.folder;
    stage.log = command.log;
    stage.device = device_of(command, program);
    stage.asks_for_gpu = stage.kind == plan::StageKind::infer && stage.device != "cpu";
    if (program.hosts.find(',') != std::string::npos) stage.hosts = split_at(program.hosts, ',');
    stage.needs = needs_of(stage.kind, stages);
    const bool writes = stage.kind == plan::StageKind::train ||
                        stage.kind == plan::StageKind::export_model ||
                        stage.kind == plan::StageKind::convert;
    if (writes && !command.outputs.empty()) stage.output = command.outputs.back();
    stages.push_back(std::move(stage));
  }
  return stages;
}

Result<plan::Plan> plan_by_script(const ScriptRequest& request) {
  const std::string project = request.project.empty() ? "." : request.project;
  const std::string script = request.script.empty()
                                 ? find_script(project, request.params_file, request.mode)
                                 : request.script;
  if (script.empty()) {
    return usage_error(fmt::format("{}: the project has no {} for mode {}; --script names one",
                                   request.params_file,
                                   script_name(request.params_file, request.mode), request.mode));
  }
  ASSAY_TRY(const std::string script_text, text_of(project, script));
  const bool launches = script == request.params_file;
  std::string params_text;
  if (!launches) {
    ASSAY_TRY(params_text, text_of(project, request.params_file));
  }
  const std::vector<Line> lines = command_lines(params_text);
  const std::string python = value_of(lines, "python");
  if (python.starts_with('/')) {
    return usage_error(fmt::format(
        "{}: a rehearsal cannot stand in for {}: name the interpreter without its folder",
        request.params_file, python));
  }

  RehearsalOptions options;
  options.command = {"bash", script};
  if (!launches) {
    options.command.insert(options.command.end(), {request.params_file, request.mode});
    if (!request.third.empty()) options.command.push_back(request.third);
  }
  options.project = project;
  options.shim = request.shim;
  options.trusted = request.trusted;
  options.programs = programs_of(lines, script_text);
  const std::string checkpoint = value_of(lines, "train_model_name");
  if (request.makes_checkpoint && !checkpoint.empty() && checkpoint != "null") {
    options.makes = {checkpoint, checkpoint + ".pdparams"};
  }
  ASSAY_TRY(const Rehearsal rehearsal, rehearse(options));
  if (rehearsal.commands.empty()) {
    return usage_error(
        fmt::format("{} starts no command in mode {} (exit code {}); it printed:\n{}", script,
                    request.mode, rehearsal.code, trimmed(rehearsal.printed)));
  }
  plan::Plan plan = plan_of(rehearsal, params_text);
  plan.model = value_of(lines, "model_name");
  plan.mode = request.mode;
  plan.folder = fmt::format("./test_tipc/output/{}/{}", plan.model, plan.mode);
  plan.results_log = plan.folder + "/results_python.log";
  for (plan::Stage& stage : plan.stages) {
    const bool is_python = !request.python.empty() && stage.argv.front() == python;
    if (is_python) stage.argv.front() = request.python;
  }
  return plan;
}

}  // namespace assay::chain::script
