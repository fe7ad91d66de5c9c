#include "chain/params/launch_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/fd.h"
#include "base/text.h"
#include "chain/params/nearest_key.h"
#include "chain/params/params.h"
#include "chain/params/run_benchmark.h"
#include "chain/params/shell_reader.h"

namespace assay::chain::params {
namespace {

namespace fs = std::filesystem;

// Reads the launching script.
class LaunchReader {
 public:
  LaunchReader(std::string_view text, ReadLaunch& out) : text_(text), out_(out) {}

  void read() {
    const auto statements = read_shell(text_);
    if (!statements) {
      problem({1, 1, statements.error().message});
      return;
    }
    for (const ShellStatement& statement : *statements) take(statement);
    if (out_.script.train.argv.empty() && out_.good()) {
      problem({static_cast<int>(std::count(text_.begin(), text_.end(), '\n')) + 1, 1,
               "expected `bash …/run_benchmark.sh …` at the end"});
    }
  }

 private:
  void problem(Problem what) { out_.problems.push_back({out_.script.path, std::move(what)}); }
  void problem(const ShellWord& at, std::string message, bool warning = false) {
    problem({at.line, at.column, std::move(message), warning});
  }

  // An unset name expands to nothing. In bash the next words then move up, so this is a warning.
  ShellVariables variables(const ShellWord& at) {
    return [this, &at](std::string_view name) -> std::optional<std::string> {
      if (auto value = found_in(variables_, name)) return value;
      std::vector<std::string_view> names;
      for (const auto& [known, value] : variables_) names.push_back(known);
      problem(at,
              fmt::format("`{}` is not set above, so that bash puts nothing here; the nearest name "
                          "is `{}`",
                          name, nearest_word(name, names)),
              true);
      return "";
    };
  }

  void take(const ShellStatement& statement) {
    const ShellWord& first = statement.front();
    if (first.text == "sleep" && statement.size() == 2) return;  // between two trainings
    const bool again =
        first.text == "bash" || first.text == "export" || read_assignment(first.text);
    if (!out_.script.train.argv.empty() && !again) {
      problem(first, fmt::format("expected nothing after the training but another one, found `{}`",
                                 first.text));
    } else if (read_assignment(first.text)) {
      for (const ShellWord& word : statement) assign(word, false);
    } else if (first.text == "export") {
      for (std::size_t i = 1; i < statement.size(); ++i) assign(statement[i], true);
    } else if (first.text == "cd" && statement.size() == 2) {
      if (const auto words = expanded(statement[1]); words.size() == 1) {
        out_.script.directory =
            (fs::path(out_.script.directory) / words.front()).lexically_normal().string();
      }
    } else if (first.text == "sed" || first.text == "bash") {
      start(statement);
    } else {
      problem(first, fmt::format("expected NAME=VALUE, export, cd, sed -i or bash, found `{}`",
                                 first.text));
    }
  }

  void assign(const ShellWord& word, bool exported) {
    const auto given = read_assignment(word.text);
    if (!given) {
      problem(word, fmt::format("expected NAME=VALUE, found `{}`", word.text));
      return;
    }
    const auto value = expand_value(given->value, variables(word));
    if (!value) {
      problem({word.line, word.column + static_cast<int>(word.text.size() - given->value.size()),
               value.error().message});
      return;
    }
    const auto [entry, fresh] = lines_.try_emplace(given->name, word.line);
    std::string& variable = variables_[given->name];
    if (given->adds) {
      variable += *value;
    } else {
      if (!fresh) {
        problem(word,
                fmt::format("`{}` is set again: the value of line {} is lost", given->name,
                            entry->second),
                true);
      }
      variable = *value;
      entry->second = word.line;
    }
    if (exported) exported_[given->name] = variable;
  }

  std::vector<std::string> expanded(const ShellWord& word) {
    auto words = expand_word(word.text, variables(word));
    if (!words) {
      problem(word, words.error().message);
      return {};
    }
    return std::move(*words);
  }

  // Records a command with all its words, except `2>&1`, which has no effect here.
  void start(const ShellStatement& statement) {
    LaunchCommand command{statement.front().line, {}};
    for (const ShellWord& word : statement) {
      if (word.text == "2>&1") continue;
      if (std::string_view("|&<>()").find(word.text.front()) != std::string_view::npos) {
        problem(word, fmt::format("expected a plain command, found `{}`", word.text));
        return;
      }
      for (std::string& one : expanded(word)) command.argv.push_back(std::move(one));
    }
    if (!out_.good() || command.argv.size() < 2) return;
    if (command.argv.front() == "sed" && command.argv[1] == "-i") {
      out_.script.prepares.push_back(std::move(command));
    } else if (command.argv.front() == "bash" && command.argv[1] == "-c") {
      start_quoted(statement, command);
    } else if (command.argv.front() == "bash") {
      start_script(statement[1], std::move(command));
    } else {
      problem(statement.front(), fmt::format("expected `sed -i` or `bash FILE`, found `{}`",
                                             join_plain(command.argv)));
    }
  }

  static std::string join_plain(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
  }

  void start_script(const ShellWord& at, LaunchCommand command) {
    const std::string name = fs::path(command.argv[1]).filename().string();
    if (!name.ends_with(".sh")) {
      problem(at, fmt::format("expected a script such as run_benchmark.sh, found `{}`", name));
    } else if (name.starts_with("prepare")) {
      out_.script.prepares.push_back(std::move(command));
    } else {
      if (out_.script.train.argv.empty()) {
        out_.script.train = std::move(command);
        out_.script.environment = environment();
      } else {
        out_.script.repeats.push_back({std::move(command), environment()});
      }
    }
  }

  // The variables exported so far.
  std::vector<std::string> environment() const {
    std::vector<std::string> entries;
    entries.reserve(exported_.size());
    for (const auto& [name, value] : exported_) entries.push_back(name + "=" + value);
    return entries;
  }

  // bash -c "NAME=value NAME=value bash run_benchmark.sh"
  void start_quoted(const ShellStatement& statement, const LaunchCommand& quoted) {
    const ShellWord& at = statement.size() > 2 ? statement[2] : statement.front();
    std::vector<ShellStatement> inner;
    if (quoted.argv.size() == 3) inner = read_shell(quoted.argv[2], at.line).value_or(inner);
    if (inner.size() != 1) {
      problem(at, "expected one command in quotes after `bash -c`");
      return;
    }
    LaunchCommand command{at.line, {}};
    for (const ShellWord& word : inner.front()) {
      const auto given = read_assignment(word.text);
      if (command.argv.empty() && given && !given->adds) {
        exported_[given->name] = given->value;
      } else {
        command.argv.push_back(word.text);
      }
    }
    if (command.argv.size() < 2 || command.argv.front() != "bash") {
      problem(at, fmt::format("expected `NAME=value … bash FILE`, found `{}`", quoted.argv[2]));
      return;
    }
    start_script(at, std::move(command));
  }

  std::string_view text_;
  ReadLaunch& out_;
  Variables variables_;
  Variables exported_;
  std::map<std::string, int, std::less<>> lines_;  // the line that set each variable last
};

// The folder in which the launch starts: the nearest parent of the script from which the training's
// script is found.
std::optional<fs::path> checkout_of(const fs::path& path, const fs::path& run) {
  std::error_code error;
  for (fs::path folder = fs::absolute(path, error).lexically_normal().parent_path();;
       folder = folder.parent_path()) {
    if (fs::is_regular_file(folder / run, error)) return folder;
    if (folder == folder.parent_path()) return std::nullopt;
  }
}

}  // namespace

bool is_launch_script(std::string_view path) { return path.ends_with(".sh"); }

ReadLaunch read_launch(const std::string& path, const std::string& root) {
  ReadLaunch read;
  read.script.path = path;
  const auto text = read_file(path);
  if (!text) {
    read.problems.push_back({path, {1, 1, text.error().message}});
    return read;
  }
  LaunchReader(*text, read).read();
  if (!read.good()) return read;
  const fs::path run =
      (fs::path(read.script.directory) / read.script.train.argv[1]).lexically_normal();
  std::optional<fs::path> folder;
  if (!root.empty()) folder = root;
  if (!folder) folder = checkout_of(path, run);
  Result<std::string> run_text = usage_error("it is not there");
  if (folder) run_text = read_file(*folder / run);
  if (!run_text) {
    read.problems.push_back({path,
                             {read.script.train.line, 1,
                              fmt::format("cannot read {}, which it starts: {}", run.string(),
                                          run_text.error().message)}});
    return read;
  }
  read.script.run_path = (*folder / run).lexically_normal().string();
  read_run_benchmark(*run_text, *text, read);
  return read;
}

std::string describe(const std::vector<LaunchProblem>& problems) {
  std::string text;
  for (const LaunchProblem& one : problems) {
    if (!text.empty()) text += '\n';
    text += describe(one.file, {one.problem});
  }
  return text;
}

}  // namespace assay::chain::params
