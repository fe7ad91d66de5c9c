#pragma once

// Decides which statements of a shell function run, if there are `if`, `case` and loops.

#include <optional>
#include <vector>

#include "chain/params/shell_reader.h"

namespace assay::chain::params {

class ShellBranches {
 public:
  enum class Runs { yes, no, unknown };

  explicit ShellBranches(ShellVariables variables) : variables_(std::move(variables)) {}

  // Takes the next statement and removes words that only branch (`then`, `else`). Returns whether
  // the rest of the statement, which may be empty, runs, does not run, or cannot be decided without
  // a shell.
  Runs take(ShellStatement& statement);

 private:
  struct Branch {
    Runs runs = Runs::no;
    bool over = false;  // an earlier part of the same `if` runs
  };

  void begin_part(const ShellStatement& statement, Branch& branch) const;
  Runs rest_of(ShellStatement& statement);
  Runs now() const;

  ShellVariables variables_;
  std::vector<Branch> open_;
};

// Evaluates `[ … ]` or `[[ … ]]`. Returns nothing unless it is made of plain comparisons (`=`,
// `==`, `!=`, `-z`, `-n`, `-eq` and similar) joined by `&&` or `||`. An unset variable is empty.
std::optional<bool> read_condition(const ShellStatement& statement, std::size_t first,
                                   const ShellVariables& variables);

}  // namespace assay::chain::params
