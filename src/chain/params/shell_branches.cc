#include "chain/params/shell_branches.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace assay::chain::params {
namespace {

using Texts = std::vector<std::string>;

std::optional<long> number(std::string_view text) {
  long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<bool> compare_numbers(std::string_view sign, std::string_view a, std::string_view b) {
  const auto left = number(a);
  const auto right = number(b);
  if (!left || !right) return std::nullopt;
  if (sign == "-eq") return *left == *right;
  if (sign == "-ne") return *left != *right;
  if (sign == "-gt") return *left > *right;
  if (sign == "-ge") return *left >= *right;
  if (sign == "-lt") return *left < *right;
  if (sign == "-le") return *left <= *right;
  return std::nullopt;
}

// Evaluates one comparison of unexpanded words.
std::optional<bool> compare(const Texts& raw, const ShellVariables& variables) {
  Texts words;
  for (const std::string& word : raw) {
    auto value = expand_value(word, variables);
    if (!value) return std::nullopt;
    words.push_back(std::move(*value));
  }
  if (words.size() == 1) return !words[0].empty();
  if (words.size() == 2 && raw[0] == "-z") return words[1].empty();
  if (words.size() == 2 && raw[0] == "-n") return !words[1].empty();
  if (words.size() != 3) return std::nullopt;
  const bool pattern = raw[2].find_first_of("*?[") != std::string::npos;
  if (raw[1] == "=" || raw[1] == "==" || raw[1] == "!=") {
    if (pattern) return std::nullopt;
    return (words[1] == "!=") != (words[0] == words[2]);
  }
  return compare_numbers(raw[1], words[0], words[2]);
}

bool is_one_of(std::string_view word, const auto& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

std::optional<bool> read_condition(const ShellStatement& statement, std::size_t first,
                                   const ShellVariables& variables) {
  if (statement.size() < first + 3) return std::nullopt;
  const std::string& open = statement[first].text;
  const std::string& close = statement.back().text;
  if (!(open == "[" && close == "]") && !(open == "[[" && close == "]]")) return std::nullopt;
  const ShellVariables or_empty = [&variables](std::string_view name) {
    return std::optional(variables(name).value_or(""));
  };
  // `&&` binds closer than `||`; both are only known inside of `[[`.
  bool any = false;
  bool all = true;
  Texts part;
  for (std::size_t i = first + 1; i < statement.size(); ++i) {
    const std::string& word = statement[i].text;
    const bool last = i + 1 == statement.size();
    if (!last && word != "||" && word != "&&") {
      part.push_back(word);
      continue;
    }
    if (!last && open == "[") return std::nullopt;
    const auto holds = compare(part, or_empty);
    if (!holds) return std::nullopt;
    all = all && *holds;
    part.clear();
    if (last || word == "||") {
      any = any || all;
      all = true;
    }
  }
  return any;
}

ShellBranches::Runs ShellBranches::now() const {
  Runs runs = Runs::yes;
  for (const Branch& branch : open_) {
    if (branch.runs == Runs::no) return Runs::no;
    if (branch.runs == Runs::unknown) runs = Runs::unknown;
  }
  return runs;
}

// Begins an `if` or `elif` with its condition.
void ShellBranches::begin_part(const ShellStatement& statement, Branch& branch) const {
  if (branch.over) {
    branch.runs = Runs::no;
    return;
  }
  const bool earlier_unknown = branch.runs == Runs::unknown;
  const auto holds = read_condition(statement, 1, variables_);
  if (holds && !*holds) {
    // A part after an unknown one runs only if that one does not.
    branch.runs = earlier_unknown ? Runs::unknown : Runs::no;
    return;
  }
  branch.runs = holds && !earlier_unknown ? Runs::yes : Runs::unknown;
  branch.over = branch.runs == Runs::yes;
}

ShellBranches::Runs ShellBranches::take(ShellStatement& statement) {
  constexpr std::array<std::string_view, 5> kLoops{"for", "while", "until", "case", "select"};
  constexpr std::array<std::string_view, 3> kEnds{"fi", "done", "esac"};
  const std::string word = statement.empty() ? std::string() : statement.front().text;
  if (word == "if") {
    open_.emplace_back();
    begin_part(statement, open_.back());
    statement.clear();
  } else if (word == "elif" && !open_.empty()) {
    begin_part(statement, open_.back());
    statement.clear();
  } else if (word == "else" && !open_.empty()) {
    Branch& branch = open_.back();
    if (branch.runs != Runs::unknown) branch.runs = branch.over ? Runs::no : Runs::yes;
    return rest_of(statement);
  } else if (is_one_of(word, kLoops)) {
    open_.push_back({Runs::unknown, false});
    statement.clear();
  } else if (is_one_of(word, kEnds) && !open_.empty()) {
    open_.pop_back();
    statement.clear();
  } else if (word == "then" || word == "do") {
    return rest_of(statement);
  }
  return now();
}

// The words after a branching word are a statement of their own, which may branch again.
ShellBranches::Runs ShellBranches::rest_of(ShellStatement& statement) {
  statement.erase(statement.begin());
  return statement.empty() ? now() : take(statement);
}

}  // namespace assay::chain::params
