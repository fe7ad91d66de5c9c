#include "chain/params/shell_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace assay::chain::params {
namespace {

bool is_name_sign(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool is_name(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
         std::all_of(text.begin(), text.end(), is_name_sign);
}

// The position after the group that opens at `at` (a quote, `${`, `$(`, a backtick), or npos.
std::size_t end_of_group(std::string_view text, std::size_t at) {
  const char open = text[at];
  if (open == '\'' || open == '`') {
    const std::size_t end = text.find(open, at + 1);
    return end == std::string_view::npos ? end : end + 1;
  }
  const char close = open == '"' ? '"' : text[at + 1] == '{' ? '}' : ')';
  for (std::size_t i = at + (open == '"' ? 1 : 2); i < text.size();) {
    if (text[i] == close) return i + 1;
    const bool group =
        text[i] == '$' && i + 1 < text.size() && (text[i + 1] == '{' || text[i + 1] == '(');
    const bool quote = text[i] == '`' || (open != '"' && (text[i] == '"' || text[i] == '\''));
    if (group || quote) {
      i = end_of_group(text, i);
      if (i == std::string_view::npos) return i;
    } else {
      i += text[i] == '\\' ? 2 : 1;
    }
  }
  return std::string_view::npos;
}

class Lexer {
 public:
  Lexer(std::string_view script, int line) : text_(script), line_(line) {}

  Result<std::vector<ShellStatement>> read() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n' || c == ';') {
        end_statement();
        step();
      } else if (c == ' ' || c == '\t' || c == '\r') {
        step();
      } else if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
        step(2);
      } else if (c == '#') {
        step(std::min(text_.find('\n', at_), text_.size()) - at_);
      } else if (c == '|' || c == '&' || c == '<' || c == '>' || c == '(' || c == ')') {
        const std::size_t end = std::min(text_.find_first_not_of("|&<>()", at_), text_.size());
        take(end);
      } else {
        ASSAY_CHECK(word());
      }
    }
    end_statement();
    return std::move(statements_);
  }

 private:
  Status word() {
    std::size_t end = at_;
    while (end < text_.size()) {
      const char c = text_[end];
      const bool group =
          c == '\'' || c == '"' || c == '`' ||
          (c == '$' && end + 1 < text_.size() && (text_[end + 1] == '{' || text_[end + 1] == '('));
      if (group) {
        const std::size_t after = end_of_group(text_, end);
        if (after == std::string_view::npos) {
          return usage_error(fmt::format("line {}: `{}` does not close", line_,
                                         text_.substr(end, c == '$' ? 2 : 1)));
        }
        end = after;
      } else if (c == '\\') {
        if (end + 1 < text_.size() && text_[end + 1] == '\n') break;
        end += 2;
      } else if (std::string_view(" \t\r\n;|<()").find(c) != std::string_view::npos) {
        break;
      } else if ((c == '&' || c == '>') && !redirects(end)) {
        break;
      } else {
        ++end;
      }
    }
    take(std::min(end, text_.size()));
    return {};
  }

  // True if the character at `at` belongs to `2>&1`.
  bool redirects(std::size_t at) const {
    constexpr std::string_view kBoth = "2>&1";
    const std::size_t start = text_[at] == '>' ? at - 1 : at - 2;
    return start >= at_ && text_.substr(start, kBoth.size()) == kBoth;
  }

  void take(std::size_t end) {
    statement_.push_back({std::string(text_.substr(at_, end - at_)), line_, column_});
    step(end - at_);
  }

  void step(std::size_t count = 1) {
    for (; count > 0 && at_ < text_.size(); --count, ++at_) {
      ++column_;
      if (text_[at_] == '\n') {
        ++line_;
        column_ = 1;
      }
    }
  }

  void end_statement() {
    if (!statement_.empty()) statements_.push_back(std::move(statement_));
    statement_.clear();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  int column_ = 1;
  ShellStatement statement_;
  std::vector<ShellStatement> statements_;
};

// Expands one word into words. Text in quotes is never split.
class Expander {
 public:
  explicit Expander(const ShellVariables& variables) : variables_(variables) {}

  Status add(std::string_view text, bool quoted) {
    for (std::size_t i = 0; i < text.size();) {
      const char c = text[i];
      if (c == '"' || (c == '\'' && !quoted)) {
        if (quoted) return refuse(text.substr(i));
        const std::size_t end = end_of_group(text, i);
        if (end == std::string_view::npos) return refuse(text.substr(i));
        const std::string_view inside = text.substr(i + 1, end - i - 2);
        open_ = true;
        if (c == '"') {
          ASSAY_CHECK(add(inside, true));
        } else {
          word_ += inside;
        }
        i = end;
      } else if (c == '\\' && i + 1 < text.size()) {
        const bool taken = !quoted || std::string_view("\"\\$`").find(text[i + 1]) != text.npos;
        if (!taken) word_ += c;
        word_ += text[i + 1];
        open_ = true;
        i += 2;
      } else if (c == '$') {
        ASSAY_TRY(i, variable(text, i, quoted));
      } else if (c == '`' || (!quoted && std::string_view("*?[]~!{}").find(c) != text.npos)) {
        return refuse(text.substr(i));
      } else {
        word_ += c;
        open_ = true;
        ++i;
      }
    }
    return {};
  }

  std::vector<std::string> finish() {
    if (open_) words_.push_back(std::move(word_));
    return std::move(words_);
  }

 private:
  static tl::unexpected<Error> refuse(std::string_view what) {
    constexpr std::size_t kShown = 40;
    return usage_error(
        fmt::format("expected plain text or a variable, found `{}`", what.substr(0, kShown)));
  }

  // Expands the variable at `at`; returns the position after it.
  Result<std::size_t> variable(std::string_view text, std::size_t at, bool quoted) {
    const bool braces = at + 1 < text.size() && text[at + 1] == '{';
    if (!braces) {
      std::size_t end = at + 1;
      while (end < text.size() && is_name_sign(text[end])) ++end;
      if (end == at + 1) return refuse(text.substr(at));
      ASSAY_CHECK(put(text.substr(at + 1, end - at - 1), std::nullopt, false, quoted));
      return end;
    }
    const std::size_t end = end_of_group(text, at);
    if (end == std::string_view::npos) return refuse(text.substr(at));
    const std::string_view inside = text.substr(at + 2, end - at - 3);
    std::size_t name_end = 0;
    while (name_end < inside.size() && is_name_sign(inside[name_end])) ++name_end;
    const std::string_view name = inside.substr(0, name_end);
    std::string_view rest = inside.substr(name_end);
    const bool or_empty = rest.starts_with(":-");
    if (name.empty() || (!rest.empty() && !or_empty && !rest.starts_with('-'))) {
      return refuse(text.substr(at, end - at));
    }
    std::optional<std::string_view> otherwise;
    if (!rest.empty()) otherwise = rest.substr(or_empty ? 2 : 1);
    ASSAY_CHECK(put(name, otherwise, or_empty, quoted));
    return end;
  }

  Status put(std::string_view name, std::optional<std::string_view> otherwise, bool or_empty,
             bool quoted) {
    const std::optional<std::string> value = variables_(name);
    if (value && !(or_empty && value->empty())) {
      put_value(*value, quoted);
      return {};
    }
    if (!otherwise) return usage_error(fmt::format("`{}` is not set above", name));
    if (!quoted) return add(*otherwise, false);  // the default's own quotes count
    ASSAY_TRY(const std::string text, expand_value(*otherwise, variables_));
    put_value(text, quoted);
    return {};
  }

  void put_value(std::string_view value, bool quoted) {
    if (quoted) {
      word_ += value;
      open_ = true;
      return;
    }
    for (const char c : value) {
      if (c != ' ' && c != '\t' && c != '\n') {
        word_ += c;
        open_ = true;
        continue;
      }
      if (open_) words_.push_back(std::move(word_));
      word_.clear();
      open_ = false;
    }
  }

  const ShellVariables& variables_;
  std::vector<std::string> words_;
  std::string word_;
  bool open_ = false;
};

}  // namespace

Result<std::vector<ShellStatement>> read_shell(std::string_view script, int first_line) {
  return Lexer(script, first_line).read();
}

std::optional<ShellAssignment> read_assignment(std::string_view word) {
  const std::size_t at = word.find('=');
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view name = word.substr(0, at);
  const bool adds = name.ends_with('+');
  if (adds) name.remove_suffix(1);
  if (!is_name(name)) return std::nullopt;
  return ShellAssignment{std::string(name), std::string(word.substr(at + 1)), adds};
}

Result<std::vector<std::string>> expand_word(std::string_view word,
                                             const ShellVariables& variables) {
  Expander expander(variables);
  ASSAY_CHECK(expander.add(word, false));
  return expander.finish();
}

Result<std::string> expand_value(std::string_view word, const ShellVariables& variables) {
  // The value of an assignment is never split, as if all variables were quoted.
  std::string text;
  for (std::size_t i = 0; i < word.size();) {
    const char c = word[i];
    const bool quote = c == '"' || c == '\'';
    std::size_t end = quote ? end_of_group(word, i) : word.find_first_of("\"'", i);
    // A quote inside of braces belongs to them.
    while (!quote && end != std::string_view::npos) {
      const std::size_t brace = word.substr(0, end).rfind("${");
      if (brace == std::string_view::npos || brace < i) break;
      const std::size_t closed = end_of_group(word, brace);
      if (closed == std::string_view::npos || closed <= end) break;
      end = word.find_first_of("\"'", closed);
    }
    if (quote && end == std::string_view::npos) return usage_error("a quote does not close");
    end = std::min(end, word.size());
    const std::string_view part = word.substr(i, end - i);
    if (quote) {
      ASSAY_TRY(const std::vector<std::string> words, expand_word(part, variables));
      if (!words.empty()) text += words.front();
    } else {
      Expander expander(variables);
      ASSAY_CHECK(expander.add(part, true));
      const std::vector<std::string> words = expander.finish();
      if (!words.empty()) text += words.front();
    }
    i = end;
  }
  return text;
}

std::optional<std::string> found_in(const Variables& variables, std::string_view name) {
  const auto found = variables.find(name);
  return found == variables.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace assay::chain::params
