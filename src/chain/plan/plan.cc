#include "chain/plan/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/text.h"

namespace assay::chain::plan {

std::string_view name(StageKind kind) {
  constexpr std::array<std::string_view, 8> kNames{"prepare", "train",  "eval",  "export",
                                                   "convert", "server", "infer", "compare"};
  return kNames.at(static_cast<std::size_t>(kind));
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

namespace {

// Users see stages numbered from 1.
std::vector<std::size_t> numbers_of(const std::vector<std::size_t>& needs) {
  std::vector<std::size_t> numbers;
  numbers.reserve(needs.size());
  for (const std::size_t need : needs) numbers.push_back(need + 1);
  return numbers;
}

}  // namespace

std::string describe_plan(const Plan& plan) {
  std::string text = fmt::format("# {} {}: {} stages, results in {}\n", plan.model, plan.mode,
                                 plan.stages.size(), plan.folder);
  for (const Stage& stage : plan.stages) {
    text += fmt::format("# {}. {}", stage.index + 1, stage.name);
    if (const std::vector<std::size_t> needs = numbers_of(stage.needs); !needs.empty()) {
      text += fmt::format("  (needs {})", fmt::join(needs, ", "));
    }
    if (!stage.hosts.empty()) text += fmt::format("  (on {})", fmt::join(stage.hosts, ", "));
    text += fmt::format("  > {}\n", stage.log);
    for (const std::string& entry : stage.environment) {
      const std::size_t value = entry.find('=') + 1;
      text += entry.substr(0, value) +
              (value < entry.size() ? shell_word(entry.substr(value)) : "") + " ";
    }
    text += shell_line(stage.argv) + "\n";
  }
  return text;
}

std::string plan_json_lines(const Plan& plan) {
  std::string text;
  for (const Stage& stage : plan.stages) {
    const nlohmann::json line{{"v", 1},
                              {"index", stage.index + 1},
                              {"stage", stage.name},
                              {"kind", name(stage.kind)},
                              {"argv", stage.argv},
                              {"env", stage.environment},
                              {"log", stage.log},
                              {"needs", numbers_of(stage.needs)},
                              {"hosts", stage.hosts},
                              {"directory", stage.directory},
                              {"output", stage.output}};
    text += dumped(line) + "\n";
  }
  return text;
}

}  // namespace assay::chain::plan
