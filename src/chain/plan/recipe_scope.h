#pragma once

// What a recipe's names mean while it is planned: variables by scope, then the roles of the params
// file; and the texts and conditions that are made of them.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chain/plan/plan_builder.h"

namespace assay::chain::plan {

class RecipeScope {
 public:
  explicit RecipeScope(PlanBuilder& builder);

  void enter() { frames_.emplace_back(); }
  void leave() { frames_.pop_back(); }
  void let(std::string_view name, std::string value);  // in the innermost frame
  void set(std::string_view name, std::string value);  // in the outermost

  // A variable, or a role's value or key.
  Result<std::string> value(std::string_view name);
  // A `let` or `set` variable alone.
  const std::string* variable(std::string_view name) const;
  bool is_role(std::string_view name) const;

  Result<std::string> text(std::string_view shape);
  Result<bool> holds(std::string_view condition);

  // What was lost of values that the suite's bash cuts: warnings, once a role.
  const std::map<std::string, std::string>& cut_values() const { return cut_; }

 private:
  Result<std::string> hole(std::string_view inside);
  Result<std::string> function(std::string_view name, std::string_view rest);
  Result<std::string> arg(std::string_view rest);
  Result<bool> term(std::string_view condition);
  std::string role_value(std::string_view role);
  std::string by_mode(const std::string& role, const std::string& value);
  std::string dynamic_command(const std::string& weights);
  Result<std::string> launch(const std::string& name, const std::string& flag);

  PlanBuilder& builder_;
  std::vector<std::map<std::string, std::string, std::less<>>> frames_;
  std::map<std::string, std::string> cut_;
};

}  // namespace assay::chain::plan
