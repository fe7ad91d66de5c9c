#pragma once

// Builds a plan stage by stage.

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "chain/params/params.h"
#include "chain/params/value_rules.h"
#include "chain/plan/plan.h"

namespace assay::chain::plan {

// Returns `key=value`, or the single blank that bash writes if key or value is null or empty.
std::string argument(std::string_view key, std::string_view value);

class PlanBuilder {
 public:
  PlanBuilder(const params::Params& params, const std::string& mode, const PlanOptions& options);

  const params::Params& params() const { return params_; }
  const PlanOptions& options() const { return options_; }
  const std::string& mode() const { return plan_.mode; }
  const std::string& folder() const { return plan_.folder; }

  void warn(std::string message) { plan_.warnings.push_back(std::move(message)); }
  // Splits the command into argv, makes name and log unique, and appends the stage. Returns its
  // index.
  std::size_t add(Stage stage);
  const Stage& stage(std::size_t index) const { return plan_.stages[index]; }
  std::size_t stage_count() const { return plan_.stages.size(); }
  Result<Plan> finish();

 private:
  std::string unique(std::set<std::string>& taken, const std::string& wanted,
                     const std::string& extension);

  const params::Params& params_;
  const PlanOptions& options_;
  Plan plan_;
  std::set<std::string> names_;
  std::set<std::string> logs_;
  std::optional<Error> error_;
};

// Keeps the stages that a filter (-k) names and the stages that these need; all without a filter.
// It is an error if no stage matches.
Result<Plan> filtered(Plan plan, const std::vector<std::string>& filters);

// Returns "CUDA_VISIBLE_DEVICES=…": "-" hides all GPUs, "" sets no variable.
std::vector<std::string> cuda_environment(std::string_view visible);

}  // namespace assay::chain::plan
