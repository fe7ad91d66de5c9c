#include "chain/params/run_benchmark.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <optional>
#include <tuple>

#include "base/text.h"
#include "chain/params/nearest_key.h"
#include "chain/params/shell_branches.h"
#include "chain/params/shell_reader.h"

namespace assay::chain::params {
namespace {

namespace fs = std::filesystem;

std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Machines and cards of a text such as N1C8.
std::optional<std::pair<int, int>> devices_of(std::string_view text) {
  if (!text.starts_with('N')) return std::nullopt;
  const std::string_view machines = text.substr(1, digits_at_front(text.substr(1)));
  const std::string_view rest = text.substr(1 + machines.size());
  if (!rest.starts_with('C')) return std::nullopt;
  const std::string_view cards = rest.substr(1);
  if (machines.starts_with('0') || cards.starts_with('0')) return std::nullopt;
  if (machines.empty() || cards.empty() || digits_at_front(cards) != cards.size()) {
    return std::nullopt;
  }
  return std::pair{whole_number(machines).value_or(1), whole_number(cards).value_or(1)};
}

// Takes one of the words off the front.
bool take_one(std::string_view& text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (!text.starts_with(word)) continue;
    text.remove_prefix(word.size());
    return true;
  }
  return false;
}

// Precisions with levels: `amp_fp16` and `pure_fp16O2` of transformers, `o2` of gpt_auto.
bool is_precision(std::string_view text) {
  const auto take_level = [&text] { return take_one(text, {"O0", "O1", "O2", "O3"}); };
  const bool prefixed = take_one(text, {"amp_", "pure_"});
  if (take_one(text, {"fp32", "fp16", "bf16", "fp8"}) || (!prefixed && take_one(text, {"amp"}))) {
    take_level();
    return text.empty();
  }
  return !prefixed && (take_level() || take_one(text, {"o0", "o1", "o2", "o3"})) && text.empty();
}

// N of the first `no_update_duration" -ge N`.
std::optional<int> silence_in(std::string_view text) {
  constexpr std::string_view kName = "no_update_duration";
  for (std::size_t at = text.find(kName); at != std::string_view::npos; at = text.find(kName)) {
    text.remove_prefix(at + kName.size());
    take_one(text, {"\""});
    if (!take_one(text, {" -ge "})) continue;
    const std::size_t digits = digits_at_front(text);
    if (digits > 0) return whole_number(text.substr(0, digits)).value_or(0);
  }
  return std::nullopt;
}

// Seconds of the first line `timeout N[smh] …`.
std::optional<int> timeout_in(std::string_view text) {
  for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n')) {
    text.remove_prefix(at + 1);
    std::string_view line = text.substr(0, text.find('\n'));
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!take_one(line, {"timeout "})) continue;
    const std::string_view number = line.substr(0, digits_at_front(line));
    line.remove_prefix(number.size());
    const int unit = line.starts_with("s ")   ? 1
                     : line.starts_with("m ") ? 60
                     : line.starts_with("h ") ? 3600
                                              : 0;
    if (!number.empty() && unit > 0) return unit * whole_number(number).value_or(0);
  }
  return std::nullopt;
}

// Evaluates `_set_params` of run_benchmark.sh for a launch.
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
    script.log_name = in_log_folder(must("train_log_file"));
    script.profiling_log_name =
        in_log_folder(found_in(variables_, "profiling_log_file").value_or(""));
  }

 private:
  static constexpr std::string_view kLogFolder = "{LOG_DIR}";

  static std::string in_log_folder(const std::string& file) {
    const std::size_t at = file.find(kLogFolder);
    if (at == std::string::npos) return file;
    return file.substr(std::min(at + kLogFolder.size() + 1, file.size()));
  }

  void problem(const std::string& file, int line, int column, std::string message,
               bool warning = false) {
    out_.problems.push_back({file, {line, column, std::move(message), warning}});
  }

  // Line and column of the value assigned to a name, or 0, 0.
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

  // Reports a problem where the user wrote the value: in the launching script, else in
  // run_benchmark.sh.
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
    ShellBranches branches([this](std::string_view one) { return look(one); });
    for (ShellStatement statement : *statements) {
      const ShellBranches::Runs runs = branches.take(statement);
      if (runs == ShellBranches::Runs::no || statement.empty()) continue;
      const auto given = read_assignment(statement.front().text);
      if (given) assign(*given, runs);
    }
    return true;
  }

  // A value that needs a shell is unknown, which is an error only where it is used.
  void assign(const ShellAssignment& given, ShellBranches::Runs runs) {
    auto value = expand_value(given.value, [&](std::string_view one) { return look(one); });
    if (runs == ShellBranches::Runs::unknown) {
      value = usage_error("it is set under a condition that needs a shell");
    }
    if (value) {
      variables_[given.name] = *value;
    } else {
      variables_.erase(given.name);
      unknown_[given.name] = value.error().message;
    }
  }

  void start_variables() {
    for (const std::string& entry : out_.script.environment) {
      const std::size_t at = entry.find('=');
      variables_[entry.substr(0, at)] = entry.substr(at + 1);
    }
    const std::vector<std::string>& argv = out_.script.train.argv;
    for (std::size_t i = 2; i < argv.size(); ++i) variables_[std::to_string(i - 1)] = argv[i];
    variables_["TRAIN_LOG_DIR"] = kLogFolder;
    variables_["PROFILING_LOG_DIR"] = kLogFolder;
  }

  std::optional<std::string> look(std::string_view name) {
    asked_.emplace_back(name);
    return found_in(variables_, name);
  }

  // Warns about variables of the launch that nothing reads.
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
    const auto devices = devices_of(script.device_num);
    if (!devices) {
      wrong("device_num",
            fmt::format("expected machines and cards such as N1C8, found `{}`", script.device_num));
      return;
    }
    std::tie(script.machines, script.cards) = *devices;
    if (script.cards % script.machines != 0) {
      wrong("device_num", fmt::format("{} cards cannot be shared equally by {} machines",
                                      script.cards, script.machines));
    }
    if (!is_precision(script.fp_item)) {
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
    if (devices_of(folder) && folder != script.device_num) {
      wrong("device_num",
            fmt::format("the file is in {}, but trains on {}", folder, script.device_num), true);
    }
  }

  void read_limits() {
    out_.script.silence_seconds = silence_in(text_).value_or(out_.script.silence_seconds);
    out_.script.limit_seconds = timeout_in(text_).value_or(out_.script.limit_seconds);
  }

  std::string_view text_;
  std::string_view launch_text_;
  ReadLaunch& out_;
  Variables variables_;
  Variables unknown_;               // why a variable's value is not known
  std::vector<std::string> asked_;  // names that _set_params reads
};

}  // namespace

void read_run_benchmark(std::string_view text, std::string_view launch_text, ReadLaunch& out) {
  RunReader(text, launch_text, out).read();
}

}  // namespace assay::chain::params
