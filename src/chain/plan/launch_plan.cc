#include "chain/plan/launch_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "chain/plan/plan_builder.h"

namespace assay::chain::plan {
namespace {

constexpr std::string_view kMode = "benchmark_train";

std::string absolute(const std::string& path) {
  std::error_code error;
  return std::filesystem::absolute(path, error).lexically_normal().string();
}

// A folder of the suite's benchmark: the one that the user's variable names, or one of the plan's.
std::string benchmark_folder(const char* variable, const Plan& plan, std::string_view name) {
  const char* given = std::getenv(variable);
  if (given != nullptr && *given != '\0') return absolute(given);
  return absolute(fmt::format("{}/{}", plan.folder, name));
}

// run_benchmark.sh needs this script of the benchmark repository, which calls `_train` and reads
// its log. assay reads the log itself, so the stand-in only trains.
constexpr std::string_view kRunModel = "function _run() { _train; }\n";

Stage stage_of(const Plan& plan, const params::LaunchScript& script, StageKind kind,
               std::string name) {
  Stage stage;
  stage.index = plan.stages.size();
  stage.kind = kind;
  stage.name = std::move(name);
  stage.log = fmt::format("{}/{}.log", plan.folder, stage.name);
  stage.device = "cpu";
  stage.directory = script.directory;
  stage.environment = script.environment;
  return stage;
}

void add(Plan& plan, Stage stage) {
  if (stage.command.empty()) stage.command = shell_line(stage.argv);
  plan.stages.push_back(std::move(stage));
}

// A training. The first one has the log for the record.
Stage training(Plan& plan, const params::LaunchScript& script, const PlanOptions& options,
               std::string name, const params::LaunchRepeat& what) {
  Stage stage = stage_of(plan, script, StageKind::train, std::move(name));
  stage.environment = what.environment;
  stage.argv = what.command.argv;
  const bool profiles = std::find(what.environment.begin(), what.environment.end(),
                                  "PROFILING=true") != what.environment.end() &&
                        !script.profiling_log_name.empty();
  const std::string logs = benchmark_folder("TRAIN_LOG_DIR", plan, "train_log");
  stage.environment.push_back("TRAIN_LOG_DIR=" + logs);
  const std::string profiles_to = benchmark_folder("PROFILING_LOG_DIR", plan, "profiling_log");
  stage.environment.push_back("PROFILING_LOG_DIR=" + profiles_to);
  stage.environment.push_back("LOG_PATH_INDEX_DIR=" +
                              benchmark_folder("LOG_PATH_INDEX_DIR", plan, "index"));
  const char* root = std::getenv("BENCHMARK_ROOT");
  if (root == nullptr || *root == '\0') {
    const std::string own = absolute(plan.folder + "/benchmark");
    stage.environment.push_back("BENCHMARK_ROOT=" + own);
    plan.files.emplace_back(own + "/scripts/run_model.sh", kRunModel);
  }
  stage.follows =
      profiles ? profiles_to + "/" + script.profiling_log_name : logs + "/" + script.log_name;
  stage.keyword = script.keyword;
  stage.idle_limit = script.silence_seconds;
  if (options.device != "cpu") {
    stage.needs_gpus = static_cast<std::size_t>(script.cards / script.machines);
    stage.device = "gpu 0";
    for (std::size_t i = 1; i < stage.needs_gpus; ++i) stage.device += fmt::format(",{}", i);
  }
  stage.on_cpu = options.device == "cpu";
  if (script.machines > 1) stage.needs_variable = "PADDLE_TRAINER_ID";
  return stage;
}

Stage record(const Plan& plan, const params::LaunchScript& script, const Stage& train,
             const PlanOptions& options) {
  Stage stage = stage_of(plan, script, StageKind::compare, "speed");
  stage.directory.clear();
  const std::string index = benchmark_folder("LOG_PATH_INDEX_DIR", plan, "index");
  stage.argv = {options.self,
                "chain",
                "speed",
                "--filename",
                train.follows,
                "--speed_log_file",
                fmt::format("{}/{}_{}_{}_speed", index, script.model_repo, script.model_name,
                            script.device_num),
                "--model_name",
                script.model_name,
                "--base_batch_size",
                script.batch_size,
                "--run_mode",
                script.run_mode,
                "--fp_item",
                script.fp_item,
                "--keyword",
                script.keyword,
                "--skip_steps",
                std::to_string(script.skip_steps),
                "--device_num",
                script.device_num,
                "--speed_unit",
                script.speed_unit,
                "--convergence_key",
                script.convergence_key};
  if (!script.model_mode.empty()) {
    stage.argv.insert(stage.argv.end(), {"--model_mode", script.model_mode});
  }
  if (script.is_large_model) stage.argv.insert(stage.argv.end(), {"--is_large_model", "True"});
  stage.needs = {train.index};
  stage.tells_speed = true;
  return stage;
}

}  // namespace

Result<Plan> make_launch_plan(const params::LaunchScript& script, const std::string& mode,
                              const PlanOptions& options) {
  if (mode != kMode) {
    return usage_error(fmt::format("a launching script runs mode {}, not `{}`", kMode, mode));
  }
  if (!options.third.empty()) {
    return usage_error(fmt::format(
        "a launching script names its training itself: expected nothing after {}, found `{}`",
        kMode, options.third));
  }
  if (!options.device.empty() && options.device != "cpu" && options.device != "gpu") {
    return usage_error(
        fmt::format("a launching script is not planned for --device {}, only for "
                    "gpu, cpu",
                    options.device));
  }
  Plan plan;
  plan.model = script.model_item;
  plan.mode = mode;
  plan.folder = fmt::format("./test_tipc/output/{}/{}", script.model_name, script.device_num);
  plan.results_log = plan.folder + "/results_python.log";
  plan.log_in_status = true;
  for (const params::LaunchCommand& prepare : script.prepares) {
    Stage stage = stage_of(
        plan, script, StageKind::prepare,
        plan.stages.empty() ? "prepare" : fmt::format("prepare_{}", plan.stages.size() + 1));
    if (!plan.stages.empty()) stage.needs = {plan.stages.size() - 1};
    stage.argv = prepare.argv;
    add(plan, std::move(stage));
  }
  const std::vector<std::size_t> prepared =
      plan.stages.empty() ? std::vector<std::size_t>() : std::vector{plan.stages.size() - 1};
  Stage train = training(plan, script, options, "train", {script.train, script.environment});
  train.needs = prepared;
  const Stage trained = train;
  add(plan, std::move(train));
  add(plan, record(plan, script, trained, options));
  for (std::size_t i = 0; i < script.repeats.size(); ++i) {
    Stage again =
        training(plan, script, options, fmt::format("train_{}", i + 2), script.repeats[i]);
    again.needs = prepared;
    add(plan, std::move(again));
  }
  return filtered(std::move(plan), options.filters);
}

std::string describe_launch(const params::LaunchScript& script) {
  std::string text = fmt::format(
      "{}: {} of {}, batch {}, {}, {}, on {} machine{} with {} card{}\n"
      "  speed: the number after `{}`, in {}, without the first {}{}\n",
      script.path, script.model_item, script.model_repo, script.batch_size, script.fp_item,
      script.run_mode, script.machines, script.machines == 1 ? "" : "s",
      script.cards / script.machines,
      script.cards == script.machines ? ""
      : script.machines == 1          ? "s"
                                      : "s each",
      script.keyword, script.speed_unit, script.skip_steps,
      script.is_large_model ? "; one of the whole training" : "");
  text += script.silence_seconds > 0
              ? fmt::format("  ends after {} s of silence in its log\n", script.silence_seconds)
              : "  has no limit on silence\n";
  return text;
}

}  // namespace assay::chain::plan
