#include "chain/plan/make_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "chain/params/nearest_key.h"
#include "chain/plan/plan_builder.h"
#include "chain/plan/standard_chain.h"

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

}  // namespace

Result<Plan> make_plan(const params::Params& params, const std::string& mode,
                       const PlanOptions& options) {
  if (!params.runs(mode)) {
    const std::vector<std::string> modes = split_at(params.layout().modes, '|');
    return usage_error(fmt::format(
        "a {} file does not run mode `{}`; the nearest is `{}`, and it runs {}",
        params.layout().name, mode, params::nearest_word(mode, modes), fmt::join(modes, ", ")));
  }
  const std::string& device = options.device;
  if (!params.has("gpu_list") || !params.has("inference")) {
    return usage_error(
        fmt::format("a {} file is run by the suite's script, and the project has none (--script "
                    "names one)",
                    params.layout().name));
  }
  if (!device.empty() && device != "gpu" && device != "cpu") {
    return usage_error(fmt::format(
        "--device {} needs the suite's script for it, and the project has none", device));
  }
  PlanBuilder builder(params, mode, options);
  add_prepare(builder);
  ASSAY_CHECK(add_standard_chain(builder));
  return builder.finish();
}

}  // namespace assay::chain::plan
