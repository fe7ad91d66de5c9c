#include "chain/script/recognise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "base/text.h"
#include "chain/params/params_text.h"
#include "chain/params/shell_words.h"
#include "chain/shim/call.h"

namespace assay::chain::script {
namespace {

namespace fs = std::filesystem;

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

// The words of a command after the interpreter and the launcher, and what the launcher was told.
struct Program {
  std::vector<std::string> words;
  std::string gpus;
  std::string hosts;
  bool counts_processes = false;  // --nproc_per_node
};

Program program_of(const std::vector<std::string>& argv, const std::string& interpreter) {
  Program program;
  std::size_t first = shim::is_python(argv.front()) || argv.front() == interpreter ? 1 : 0;
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
      program.counts_processes = program.counts_processes || option.ends_with("nproc_per_node");
    }
  }
  program.words.assign(argv.begin() + static_cast<std::ptrdiff_t>(first), argv.end());
  return program;
}

bool looks_like_command(const CommandLine& line) {
  return line.words.front().find('.') != std::string::npos || line.words.size() > 1;
}

std::string key_of(const std::vector<std::string>& words, const std::vector<CommandLine>& lines) {
  const CommandLine* best = nullptr;
  for (const CommandLine& line : lines) {
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

// Whether the arguments ask for a GPU (`--use_gpu=True`, `--device gpu`); nothing if they do not
// say.
std::optional<bool> asks_for_gpu(const std::vector<std::string>& argv) {
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const std::size_t equals = argv[i].find('=');
    const bool apart = equals == std::string::npos && argv[i].starts_with('-');
    const std::string key = lowered(argv[i].substr(0, equals));
    const std::string value = lowered(!apart                ? argv[i].substr(equals + 1)
                                      : i + 1 < argv.size() ? argv[i + 1]
                                                            : "");
    if (key.ends_with("use_gpu") || key.ends_with("use-gpu") || key.ends_with("device")) {
      if (value == "true" || value.starts_with("gpu")) return true;
      if (value == "false" || value == "cpu") return false;
    }
  }
  return std::nullopt;
}

// Where the command writes, as seen from the project.
std::string output_of(const Command& command) {
  if (command.outputs.empty()) return {};
  const std::string& output = command.outputs.back();
  const bool relative = !command.folder.empty() && !output.starts_with('/');
  return relative ? command.folder + "/" + output : output;
}

}  // namespace

std::vector<CommandLine> command_lines(const std::string& params_text) {
  std::vector<CommandLine> lines;
  for (const auto& section : params::read_params_text(params_text).sections) {
    for (const auto& line : section.lines) {
      auto words = params::split_words(line.value);
      if (words && !words->empty()) lines.push_back({line.key, std::move(*words)});
    }
  }
  return lines;
}

std::string value_of(const std::vector<CommandLine>& lines, std::string_view key) {
  for (const CommandLine& line : lines) {
    if (line.key == key) return line.words.front();
  }
  return {};
}

std::vector<std::string> set_by_script(const std::vector<std::string>& environment,
                                       const std::set<std::string>& before) {
  constexpr std::array<std::string_view, 5> kOfBash{"PWD", "OLDPWD", "SHLVL", "_",
                                                    "BASH_FUNC_kill%%"};
  std::vector<std::string> set;
  for (const std::string& entry : environment) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    const bool of_bash = std::ranges::find(kOfBash, name) != kOfBash.end();
    if (!of_bash && !before.contains(entry)) set.push_back(entry);
  }
  std::ranges::sort(set);
  return set;
}

std::vector<std::size_t> Recogniser::needs_of(plan::StageKind kind) const {
  using enum plan::StageKind;
  const auto makes = [&](plan::StageKind made) {
    if (kind == train || kind == prepare) return false;
    return made == train || (kind != eval && (made == export_model || made == convert)) ||
           (kind == infer && made == server);
  };
  for (std::size_t i = kinds_.size(); i-- > 0;) {
    if (makes(kinds_[i])) return {i};
  }
  return {};
}

plan::Stage Recogniser::take(const Command& command) {
  const Program program = program_of(command.argv, value_of(lines_, "python"));
  const std::string key = key_of(program.words, lines_);
  plan::Stage stage;
  stage.index = kinds_.size();
  stage.kind = kind_of(key).value_or(
      kind_of(program.words.empty() ? "" : program.words.front())
          .value_or(kind_of(command.argv.front()).value_or(plan::StageKind::prepare)));
  stage.name = base_name(key, program.words);
  if (const int count = ++named_[stage.name]; count > 1) {
    stage.name += fmt::format("_{}", count);
  }
  stage.argv = command.argv;
  stage.command = shell_line(command.argv);
  stage.environment = command.environment;
  stage.directory = command.folder;
  stage.log = command.log;
  stage.device = device_of(command, program);
  stage.asks_for_gpu = stage.kind == plan::StageKind::infer &&
                       asks_for_gpu(command.argv).value_or(stage.device != "cpu");
  if (program.hosts.find(',') != std::string::npos) stage.hosts = split_at(program.hosts, ',');
  stage.on_cpu = !stage.hosts.empty() && stage.device == "cpu" && program.counts_processes;
  stage.needs = needs_of(stage.kind);
  const bool writes = stage.kind == plan::StageKind::train ||
                      stage.kind == plan::StageKind::export_model ||
                      stage.kind == plan::StageKind::convert;
  if (writes) stage.output = output_of(command);
  kinds_.push_back(stage.kind);
  return stage;
}

}  // namespace assay::chain::script
