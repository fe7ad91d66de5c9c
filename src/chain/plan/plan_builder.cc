#include "chain/plan/plan_builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "chain/params/shell_words.h"

namespace assay::chain::plan {

std::string argument(std::string_view key, std::string_view value) {
  if (key == "null" || params::is_absent(value)) return " ";
  return fmt::format("{}={}", key, value);
}

std::vector<std::string> cuda_environment(std::string_view visible) {
  if (visible.empty()) return {};
  return {fmt::format("CUDA_VISIBLE_DEVICES={}", visible == "-" ? "" : visible)};
}

PlanBuilder::PlanBuilder(const params::Params& params, const std::string& mode,
                         const PlanOptions& options)
    : params_(params), options_(options) {
  plan_.model = params.value("model_name");
  plan_.mode = mode;
  plan_.log_in_status = !params.layout().short_status;
  const std::string root = options.output_root.empty() ? "./test_tipc/output" : options.output_root;
  plan_.folder = fmt::format("{}/{}/{}", root, plan_.model, mode);
  if (const Status model = params::check_model(plan_.model); !model) error_ = model.error();
  plan_.results_log = plan_.folder + "/results_python.log";
}

std::string PlanBuilder::unique(std::set<std::string>& taken, const std::string& wanted,
                                const std::string& extension) {
  std::string name = wanted + extension;
  for (int n = 2; !taken.insert(name).second; ++n)
    name = fmt::format("{}_{}{}", wanted, n, extension);
  return name;
}

std::size_t PlanBuilder::add(Stage stage) {
  stage.index = plan_.stages.size();
  if (stage.argv.empty()) {
    auto argv = params::split_words(stage.command);
    if (!argv) {
      error_ = argv.error();
      argv = std::vector<std::string>{"false"};
    }
    stage.argv = std::move(*argv);
  }
  stage.name = unique(names_, stage.name, "");
  constexpr std::string_view kLog = ".log";
  if (stage.log.ends_with(kLog)) stage.log.resize(stage.log.size() - kLog.size());
  stage.log = unique(logs_, stage.log, std::string(kLog));
  plan_.stages.push_back(std::move(stage));
  return plan_.stages.back().index;
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

Result<Plan> PlanBuilder::finish() {
  if (error_) return tl::unexpected<Error>(*error_);
  // Every stage after `prepare` needs it.
  if (!plan_.stages.empty() && plan_.stages.front().kind == StageKind::prepare) {
    for (std::size_t i = 1; i < plan_.stages.size(); ++i) plan_.stages[i].needs.push_back(0);
  }
  if (plan_.stages.empty() && options_.filters.empty()) {
    return usage_error(
        fmt::format("mode {} has nothing to run: every command is null", plan_.mode));
  }
  return filtered(std::move(plan_), options_.filters);
}

}  // namespace assay::chain::plan
