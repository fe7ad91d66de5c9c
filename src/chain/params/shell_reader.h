#pragma once

// A small reader of bash scripts that only set variables and start commands. It executes nothing. A
// word is plain text, quotes and variables set before it; anything else is an error.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::chain::params {

struct ShellWord {
  std::string text;  // as written, with quotes
  int line = 1;
  int column = 1;
};

// The words of a command. Operators (`|`, `&&`, `>`) are words of their own.
using ShellStatement = std::vector<ShellWord>;

// Splits a script into statements at line ends and `;`. Removes comments and joins lines that end
// in a backslash. `first_line` is the number of the text's first line. An unclosed quote or brace
// is an error with its line.
Result<std::vector<ShellStatement>> read_shell(std::string_view script, int first_line = 1);

// A word `NAME=VALUE` or `NAME+=VALUE`.
struct ShellAssignment {
  std::string name;
  std::string value;  // not expanded
  bool adds = false;
};
// Parses an assignment; nothing for another word.
std::optional<ShellAssignment> read_assignment(std::string_view word);

// Variables by name.
using Variables = std::map<std::string, std::string, std::less<>>;
// The value of a variable; nothing if it is unset.
std::optional<std::string> found_in(const Variables& variables, std::string_view name);

// Returns the value of a variable, or nothing if it is unset. Names of digits are the script's
// arguments.
using ShellVariables = std::function<std::optional<std::string>(std::string_view)>;

// Expands a word as a shell does: removes quotes, expands `$NAME`, `${NAME}`, `${NAME:-WORD}` and
// `${NAME-WORD}`, and splits unquoted text at blanks. Every other expansion (`$(…)`, backticks,
// `${NAME%…}`, globs) and an unset variable is an error.
Result<std::vector<std::string>> expand_word(std::string_view word,
                                             const ShellVariables& variables);

// The same as one text, as for the value of an assignment.
Result<std::string> expand_value(std::string_view word, const ShellVariables& variables);

}  // namespace assay::chain::params
