#include "chain/plan/plan_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"

namespace assay::chain::plan {
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
