#pragma once

// A small reader of bash scripts that only set variables and start commands. It never evaluates
// anything: a word is plain text, quotes and variables that were set above it, or it is refused.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::chain::params {

struct ShellWord {
  std::string text;  // as it stands there, quotes and all
  int line = 1;
  int column = 1;
};

// The words of one command. Operators (`|`, `&&`, `>`) are words of their own.
using ShellStatement = std::vector<ShellWord>;

// Splits a script into statements, at line ends and `;`. Comments are left out, lines that end in a
// backslash go on. `first_line` is the number of the text's first line. Fails where a quote or a
// brace does not close; the message says at which line.
Result<std::vector<ShellStatement>> read_shell(std::string_view script, int first_line = 1);

// `NAME=VALUE` or `NAME+=VALUE` as a word.
struct ShellAssignment {
  std::string name;
  std::string value;  // not expanded
  bool adds = false;
};
std::optional<ShellAssignment> read_assignment(std::string_view word);

// Variables of a shell by their names, and the value of one of them.
using Variables = std::map<std::string, std::string, std::less<>>;
std::optional<std::string> found_in(const Variables& variables, std::string_view name);

// What a variable holds; nothing where it is not set. Names of digits are the script's arguments.
using ShellVariables = std::function<std::optional<std::string>(std::string_view)>;

// The words that a shell makes of one: quotes taken away, variables put in (`$NAME`, `${NAME}`,
// `${NAME:-WORD}`, `${NAME-WORD}`), what stands outside quotes split at blanks. Fails for
// everything else that a shell would do (`$(…)`, backticks, `${NAME%…}`, globs) and for variables
// that are not set.
Result<std::vector<std::string>> expand_word(std::string_view word,
                                             const ShellVariables& variables);

// The same as one text, as the value of an assignment is read.
Result<std::string> expand_value(std::string_view word, const ShellVariables& variables);

}  // namespace assay::chain::params
