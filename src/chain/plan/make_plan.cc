#include "chain/plan/make_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

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

bool is_number(std::string_view text) {
  return !text.empty() && digits_at_front(text) == text.size();
}

// The number of at most `most` digits without leading zero; 0 if the text is none.
int count_in(std::string_view text, std::size_t most) {
  if (!is_number(text) || text.size() > most || text.starts_with('0')) return 0;
  return std::stoi(std::string(text));
}

// Whether it is MODEL_bsN_PRECISION_MODE_DEVICES. As bash reads it: parts between `_`.
bool is_training(std::string_view text) {
  constexpr std::array<std::string_view, 7> kPrecisions{"fp32", "fp16",    "bf16",    "amp",
                                                        "null", "ampfp16", "purefp16"};
  const std::vector<std::string> parts = split_at(text, '_');
  if (parts.size() != 5) return false;
  const bool good_model = parts[0] == "dynamic" || parts[0] == "dynamicTostatic";
  const bool good_batch =
      parts[1].starts_with("bs") && count_in(std::string_view(parts[1]).substr(2), 7) > 0;
  const bool good_mode = !parts[3].empty() && std::ranges::all_of(parts[3], [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-';
  });
  const std::string_view devices = parts[4];
  const std::size_t cut = std::min(devices.find('C'), devices.size() - 1);
  if (!good_model || !good_batch || !good_mode || !devices.starts_with('N')) return false;
  if (std::ranges::find(kPrecisions, parts[2]) == kPrecisions.end()) return false;
  const int machines = count_in(devices.substr(1, cut - 1), 3);
  const int cards = count_in(devices.substr(cut + 1), 4);
  return machines > 0 && cards > 0 && cards % machines == 0;
}

// Checks the third argument: the training of benchmark_train, else CUDA_VISIBLE_DEVICES.
Status check_third(const std::string& mode, const std::string& third) {
  if (third.empty()) return {};
  if (mode != "benchmark_train") {
    const std::vector<std::string> gpus = split_at(third, ',');
    if (std::ranges::all_of(gpus, is_number)) return {};
    return usage_error(fmt::format(
        "the argument after {}: expected GPU numbers such as 0 or 0,1, found `{}`", mode, third));
  }
  if (third == "dynamicTostatic" || is_training(third)) return {};
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
