#include "chain/plan/make_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <regex>

#include "base/text.h"
#include "chain/params/nearest_key.h"
#include "chain/plan/plan_builder.h"
#include "chain/plan/recipe.h"

namespace assay::chain::plan {
namespace {

void add_prepare(PlanBuilder& builder) {
  const PlanOptions& options = builder.options();
  if (options.prepare.empty()) return;
  Stage stage;
  stage.name = "prepare";
  stage.kind = StageKind::prepare;
  stage.argv = {"bash", options.prepare, options.params_path, builder.mode()};
  stage.command = shell_line(stage.argv);
  stage.log = builder.folder() + "/prepare.log";
  stage.device = "cpu";
  builder.add(std::move(stage));
}

// Checks that files of this kind support the device. All support the GPU.
Status check_device(const params::Layout& layout, const std::string& device) {
  if (device.empty() || device == "gpu") return {};
  const std::vector<std::string> devices = split_at(layout.devices, '|');
  if (std::find(devices.begin(), devices.end(), device) != devices.end()) return {};
  if (devices.empty()) {
    return usage_error(fmt::format(
        "--device {}: {} has no script that puts a {} file on another device; it runs on what "
        "the file names",
        device, layout.suite->name, layout.name));
  }
  return usage_error(fmt::format("--device {}: a {} file of {} runs on gpu, {}", device,
                                 layout.name, layout.suite->name, fmt::join(devices, ", ")));
}

// Checks the third argument: the training of benchmark_train, else CUDA_VISIBLE_DEVICES.
Status check_third(const std::string& mode, const std::string& third) {
  if (third.empty()) return {};
  if (mode != "benchmark_train") {
    static const std::regex kGpus("[0-9]+(,[0-9]+)*");
    if (std::regex_match(third, kGpus)) return {};
    return usage_error(fmt::format(
        "the argument after {}: expected GPU numbers such as 0 or 0,1, found `{}`", mode, third));
  }
  // As bash reads it: parts between `_`.
  static const std::regex kWhat(
      "(dynamic|dynamicTostatic)_bs[1-9][0-9]{0,6}_(fp32|fp16|bf16|amp|ampfp16|purefp16|null)_"
      "[A-Za-z0-9-]+_N([1-9][0-9]{0,2})C([1-9][0-9]{0,3})");
  std::smatch match;
  if (third == "dynamicTostatic") return {};
  if (std::regex_match(third, match, kWhat) &&
      std::stoi(match[4].str()) % std::stoi(match[3].str()) == 0) {
    return {};
  }
  return usage_error(
      fmt::format("the argument after benchmark_train: expected MODEL_bsN_PRECISION_MODE_DEVICES "
                  "such as dynamic_bs8_fp32_DP_N1C1 (MODEL: dynamic or dynamicTostatic; DEVICES: "
                  "machines and cards, the same number of cards on each), found `{}`",
                  third));
}

}  // namespace

Result<Plan> make_plan(const params::Params& params, const std::string& mode,
                       const PlanOptions& options) {
  if (!params.runs(mode)) {
    const std::vector<std::string> modes = split_at(params.layout().modes, '|');
    return usage_error(fmt::format(
        "a {} file does not run mode `{}`; the nearest is `{}`, and it runs {}",
        params.layout().name, mode, params::nearest_word(mode, modes), fmt::join(modes, ", ")));
  }
  ASSAY_CHECK(check_device(params.layout(), options.device));
  ASSAY_CHECK(check_third(mode, options.third));
  PlanBuilder builder(params, mode, options);
  add_prepare(builder);
  ASSAY_CHECK(plan_recipe(builder));
  return builder.finish();
}

}  // namespace assay::chain::plan
