#include "chain/plan/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace assay::chain::plan {

std::string_view name(StageKind kind) {
  switch (kind) {
    case StageKind::prepare:
      return "prepare";
    case StageKind::train:
      return "train";
    case StageKind::eval:
      return "eval";
    case StageKind::export_model:
      return "export";
    case StageKind::convert:
      return "convert";
    case StageKind::server:
      return "server";
    case StageKind::infer:
      return "infer";
    case StageKind::compare:
      return "compare";
  }
  return "stage";
}

Result<Plan> filtered(Plan plan, const std::vector<std::string>& filters) {
  if (filters.empty()) return plan;
  std::vector<bool> kept(plan.stages.size(), false);
  for (std::size_t i = plan.stages.size(); i-- > 0;) {
    const std::string& name = plan.stages[i].name;
    kept[i] = kept[i] || std::any_of(filters.begin(), filters.end(), [&](const std::string& word) {
                return name.find(word) != std::string::npos;
              });
    if (!kept[i]) continue;
    for (const std::size_t need : plan.stages[i].needs) kept[need] = true;
  }
  std::vector<std::size_t> new_index(plan.stages.size());
  std::vector<Stage> stages;
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    if (!kept[i]) continue;
    new_index[i] = stages.size();
    Stage stage = std::move(plan.stages[i]);
    stage.index = stages.size();
    for (std::size_t& need : stage.needs) need = new_index[need];
    stages.push_back(std::move(stage));
  }
  plan.stages = std::move(stages);
  if (!plan.stages.empty()) return plan;
  return usage_error(
      fmt::format("no stage's name contains `{}` (see --dry-run)", fmt::join(filters, "` or `")));
}

}  // namespace assay::chain::plan
