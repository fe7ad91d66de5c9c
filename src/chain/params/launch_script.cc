#include "chain/params/launch_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <regex>

#include "base/fd.h"
#include "base/text.h"
#include "chain/params/nearest_key.h"
#include "chain/params/params.h"
#include "chain/params/shell_reader.h"

namespace assay::chain::params {
namespace {

namespace fs = std::filesystem;

using Variables = std::map<std::string, std::string, std::less<>>;

std::optional<std::string> found_in(const Variables& variables, std::string_view name) {
  const auto found = variables.find(name);
  return found == variables.end() ? std::nullopt : std::optional(found->second);
}

std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Reads the launching script itself.
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
    for (const auto& [name, value] : exported_) {
      out_.script.environment.push_back(name + "=" + value);
    }
  }

 private:
  void problem(Problem what) { out_.problems.push_back({out_.script.path, std::move(what)}); }
  void problem(const ShellWord& at, std::string message, bool warning = false) {
    problem({at.line, at.column, std::move(message), warning});
  }

  // A name that is not set is nothing, as in bash, where the words behind it then move up: told.
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
    if (!out_.script.train.argv.empty()) {
      problem(first, fmt::format("expected nothing behind the training, found `{}`", first.text));
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
                fmt::format("`{}` is set a second time: what line {} gave it is lost", given->name,
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

  // A command: all of its words, without `2>&1`, which changes nothing here.
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
      out_.script.train = std::move(command);
    }
  }

  // bash -c "NAME=value NAME=value bash run_benchmark.sh"
  void start_quoted(const ShellStatement& statement, const LaunchCommand& quoted) {
    const ShellWord& at = statement.size() > 2 ? statement[2] : statement.front();
    std::vector<ShellStatement> inner;
    if (quoted.argv.size() == 3) inner = read_shell(quoted.argv[2], at.line).value_or(inner);
    if (inner.size() != 1) {
      problem(at, "expected one command in quotes behind `bash -c`");
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
  std::map<std::string, int, std::less<>> lines_;  // where each was set last
};

// What `_set_params` of run_benchmark.sh makes of a launch.
class RunReader {
 public:
  RunReader(std::string_view text, std::string_view launch_text, ReadLaunch& out)
      : text_(text), launch_text_(launch_text), out_(out) {}

  void read() {
    if (!read_set_params()) return;
    check_given();
    LaunchScript& script = out_.script;
    script.model_item = must("model_item");
    script.model_name = must("model_name");
    script.model_repo = must("model_repo");
    script.batch_size = must("base_batch_size");
    script.fp_item = must("fp_item");
    script.run_mode = must("run_mode");
    script.device_num = must("device_num");
    script.keyword = must("keyword");
    script.speed_unit = must("speed_unit");
    script.convergence_key = found_in(variables_, "convergence_key").value_or("");
    script.model_mode = found_in(variables_, "model_mode").value_or("");
    script.is_large_model = lowered(found_in(variables_, "is_large_model").value_or("")) == "true";
    const std::string skipped = must("skip_steps");
    if (!out_.good()) return;
    if (const auto steps = whole_number(skipped); steps && *steps >= 0) {
      script.skip_steps = *steps;
    } else {
      wrong("skip_steps", fmt::format("expected a whole number, found `{}`", skipped));
    }
    check_values();
    read_limits();
    const std::string file = must("train_log_file");
    script.log_name =
        file.substr(std::min(file.find(kLogFolder) + kLogFolder.size() + 1, file.size()));
  }

 private:
  static constexpr std::string_view kLogFolder = "{TRAIN_LOG_DIR}";

  void problem(const std::string& file, int line, int column, std::string message,
               bool warning = false) {
    out_.problems.push_back({file, {line, column, std::move(message), warning}});
  }

  // Line and column of the value that is given to a name in a text; 0 where none is.
  static std::pair<int, int> place_of(std::string_view text, const std::string& name) {
    for (std::size_t at = text.find(name + "="); at != std::string_view::npos;
         at = text.find(name + "=", at + 1)) {
      const bool whole =
          at == 0 || std::string_view(" \t\n\"'").find(text[at - 1]) != std::string_view::npos;
      if (!whole) continue;
      const std::string_view before = text.substr(0, at);
      const std::size_t line = before.rfind('\n');
      const std::size_t column = line == std::string_view::npos ? at : at - line - 1;
      return {static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
              static_cast<int>(column + name.size()) + 2};
    }
    return {0, 0};
  }

  // Told where the user wrote it: in the launching script, else in run_benchmark.sh.
  void wrong(const std::string& name, std::string message, bool warning = false) {
    const auto given = place_of(launch_text_, name);
    const bool own = given.first == 0;
    const auto [line, column] = own ? place_of(text_, name) : given;
    problem(own ? out_.script.run_path : out_.script.path, std::max(1, line), std::max(1, column),
            fmt::format("`{}`: {}", name, message), warning);
  }

  bool read_set_params() {
    const std::size_t name = text_.find("_set_params()");
    const std::size_t brace = name == std::string_view::npos ? name : text_.find('{', name);
    const std::size_t end = brace == std::string_view::npos ? brace : text_.find("\n}", brace);
    if (end == std::string_view::npos) {
      problem(out_.script.run_path, 1, 1, "expected a function `_set_params() { … }`");
      return false;
    }
    const auto first =
        static_cast<int>(
            std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(brace), '\n')) +
        1;
    const auto statements = read_shell(text_.substr(brace + 1, end - brace - 1), first);
    if (!statements) {
      problem(out_.script.run_path, first, 1, statements.error().message);
      return false;
    }
    start_variables();
    for (const ShellStatement& statement : *statements) {
      const auto given = read_assignment(statement.front().text);
      if (!given) continue;
      // What cannot be read without a shell is not known: it matters only where it is asked for.
      const auto value =
          expand_value(given->value, [&](std::string_view one) { return look(one); });
      if (value) {
        variables_[given->name] = *value;
      } else {
        variables_.erase(given->name);
        unknown_[given->name] = value.error().message;
      }
    }
    return true;
  }

  void start_variables() {
    for (const std::string& entry : out_.script.environment) {
      const std::size_t at = entry.find('=');
      variables_[entry.substr(0, at)] = entry.substr(at + 1);
    }
    const std::vector<std::string>& argv = out_.script.train.argv;
    for (std::size_t i = 2; i < argv.size(); ++i) variables_[std::to_string(i - 1)] = argv[i];
    variables_["TRAIN_LOG_DIR"] = kLogFolder;
  }

  std::optional<std::string> look(std::string_view name) {
    asked_.emplace_back(name);
    return found_in(variables_, name);
  }

  // What the launch gives and nobody reads.
  void check_given() {
    const std::size_t given = out_.script.train.argv.size() - 2;
    std::size_t read = 0;
    for (const std::string& name : asked_) {
      if (const auto number = whole_number(name)) {
        read = std::max(read, static_cast<std::size_t>(*number));
      }
    }
    if (given > read) {
      problem(out_.script.path, out_.script.train.line, 1,
              fmt::format("{} arguments for {} that run_benchmark.sh reads", given, read), true);
    }
    for (const std::string& entry : out_.script.environment) {
      const std::string name = entry.substr(0, entry.find('='));
      const bool own = place_of(launch_text_, name).first > 0;
      if (!own || name.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 0) continue;
      if (text_.find("{" + name) == std::string_view::npos &&
          text_.find("$" + name) == std::string_view::npos) {
        wrong(name,
              fmt::format("run_benchmark.sh reads no such variable; the nearest is `{}`",
                          nearest_word(name, asked_)),
              true);
      }
    }
  }

  std::string must(const std::string& name) {
    const auto value = found_in(variables_, name);
    if (value && !value->empty()) return *value;
    const auto reason = found_in(unknown_, name);
    wrong(name, reason ? *reason : "run_benchmark.sh does not set it in _set_params");
    return {};
  }

  void check_values() {
    LaunchScript& script = out_.script;
    static const std::regex kDevices("N([1-9][0-9]*)C([1-9][0-9]*)");
    std::smatch match;
    if (!std::regex_match(script.device_num, match, kDevices)) {
      wrong("device_num",
            fmt::format("expected machines and cards such as N1C8, found `{}`", script.device_num));
      return;
    }
    script.machines = whole_number(match[1].str()).value_or(1);
    script.cards = whole_number(match[2].str()).value_or(1);
    if (script.cards % script.machines != 0) {
      wrong("device_num", fmt::format("{} cards are no whole number on each of {} machines",
                                      script.cards, script.machines));
    }
    static const std::regex kPrecision("(fp32|fp16|bf16|fp8|amp)(O[0-3])?");
    if (!std::regex_match(script.fp_item, kPrecision)) {
      constexpr std::array<std::string_view, 4> kUsual{"fp32", "fp16", "bf16", "fp8"};
      wrong("fp_item", fmt::format("expected fp32, fp16 or bf16, found `{}`; the nearest is `{}`",
                                   script.fp_item, nearest_word(script.fp_item, kUsual)));
    }
    const auto batch = whole_number(script.batch_size);
    if (!batch || *batch < 1) {
      wrong(place_of(launch_text_, "bs_item").first > 0 ? "bs_item" : "base_batch_size",
            fmt::format("expected a batch size, found `{}`", script.batch_size));
    }
    const std::string folder = fs::path(script.path).parent_path().filename().string();
    if (std::regex_match(folder, kDevices) && folder != script.device_num) {
      wrong("device_num",
            fmt::format("the file lies in {}, but trains on {}", folder, script.device_num), true);
    }
  }

  void read_limits() {
    const std::string text(text_);
    std::smatch match;
    static const std::regex kSilence("no_update_duration\"? -ge ([0-9]+)");
    if (std::regex_search(text, match, kSilence)) {
      out_.script.silence_seconds = whole_number(match[1].str()).value_or(0);
    }
    static const std::regex kTimeout("\n[ \t]*timeout ([0-9]+)([smh]) ");
    if (std::regex_search(text, match, kTimeout)) {
      const int unit = match[2] == "s" ? 1 : match[2] == "m" ? 60 : 3600;
      out_.script.limit_seconds = unit * whole_number(match[1].str()).value_or(0);
    }
  }

  std::string_view text_;
  std::string_view launch_text_;
  ReadLaunch& out_;
  Variables variables_;
  Variables unknown_;               // why a variable's value is not known
  std::vector<std::string> asked_;  // the names that _set_params reads
};

// The folder in which the launch is started: the one, on the way up from the script, from which
// the training's script is found.
std::optional<fs::path> checkout_of(const fs::path& path, const fs::path& run) {
  std::error_code error;
  for (fs::path folder = fs::absolute(path, error).lexically_normal().parent_path();;
       folder = folder.parent_path()) {
    if (fs::is_regular_file(folder / run, error)) return folder;
    if (folder == folder.parent_path()) return std::nullopt;
  }
}

}  // namespace

bool ReadLaunch::good() const {
  return std::all_of(problems.begin(), problems.end(),
                     [](const LaunchProblem& one) { return one.problem.warning; });
}

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
  RunReader(*run_text, *text, read).read();
  return read;
}

std::string describe(const std::vector<LaunchProblem>& problems) {
  std::string text;
  for (const LaunchProblem& one : problems) {
    if (!text.empty()) text += "\n";
    text += describe(one.file, {one.problem});
  }
  return text;
}

}  // namespace assay::chain::params
