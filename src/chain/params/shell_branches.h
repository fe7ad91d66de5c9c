#pragma once

// Which statements of a shell function are run where `if`, `case` and loops stand among them.

#include <optional>
#include <vector>

#include "chain/params/shell_reader.h"

namespace assay::chain::params {

class ShellBranches {
 public:
  enum class Runs { yes, no, unknown };

  explicit ShellBranches(ShellVariables variables) : variables_(std::move(variables)) {}

  // Takes the next statement. Words that only branch (`then`, `else`) are taken away; what is left
  // of it, maybe nothing, is run, not run, or nobody knows without a shell.
  Runs take(ShellStatement& statement);

 private:
  struct Branch {
    Runs runs = Runs::no;
    bool over = false;  // an earlier part of the same `if` is run
  };

  void begin_part(const ShellStatement& statement, Branch& branch) const;
  Runs rest_of(ShellStatement& statement);
  Runs now() const;

  ShellVariables variables_;
  std::vector<Branch> open_;
};

// What `[ … ]` or `[[ … ]]` says; nothing where it is not one of the plain comparisons (`=`, `==`,
// `!=`, `-z`, `-n`, `-eq` and its kin, joined by `&&` or `||`). A variable that is not set is
// empty.
std::optional<bool> read_condition(const ShellStatement& statement, std::size_t first,
                                   const ShellVariables& variables);

}  // namespace assay::chain::params
