#pragma once

// Shared by the planners of the kinds: a command put together as the bash does it, and the plan
// that grows stage by stage.

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "chain/params/value_rules.h"
#include "chain/params/words.h"
#include "chain/plan/plan.h"

namespace assay::chain::plan {

// `key=value`, or the single blank that the bash puts where key or value is null or nothing.
std::string argument(std::string_view key, std::string_view value);

// Pieces with a blank between them: what the bash's "${a} ${b}" gives.
std::string command_line(const std::vector<std::string>& pieces);

// One combination of what inference is told.
struct InferPoint {
  std::string use_gpu;
  bool gpu = false;
  std::string mkldnn;
  std::string threads;
  std::string tensorrt;
  std::string precision;
  std::string batch;
};

// What a model folder offers to inference.
struct InferSource {
  std::string cell;  // names the stages and their logs
  std::string model_dir;
  std::string images;
  std::optional<std::size_t> made_by;     // the stage that makes model_dir
  std::string visible;                    // CUDA_VISIBLE_DEVICES; the same on CPU with "-"
  std::string quantised;                  // True, False, or anything else for neither
  std::string weights;                    // what the model was exported from; empty: not known
  std::vector<std::size_t> weights_from;  // the stage that makes them, if any
};

class PlanBuilder {
 public:
  PlanBuilder(const params::Params& params, const std::string& mode, const PlanOptions& options);

  const params::Params& params() const { return params_; }
  const PlanOptions& options() const { return options_; }
  const std::string& mode() const { return plan_.mode; }
  const std::string& folder() const { return plan_.folder; }
  std::string python() const;

  void set_folder(std::string folder, std::string results_log);
  void warn(std::string message) { plan_.warnings.push_back(std::move(message)); }
  // The suite's bash runs nothing either, for this reason.
  void may_be_empty(std::string reason) { plan_.nothing = std::move(reason); }
  // Splits the command into argv, makes name and log unique, and takes the stage in.
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

// "NAME=value" for a gpu_list entry's training, and for what follows on one GPU.
std::vector<std::string> cuda_environment(std::string_view visible);

// The inference matrix of a layout; which roles exist decides which axes there are.
std::vector<InferPoint> infer_points(const params::Params& params, const std::string& quantised);
// One stage per point.
void plan_inference(PlanBuilder& builder, const InferSource& source);

void plan_training(PlanBuilder& builder);
void plan_whole_infer(PlanBuilder& builder);
void plan_ptq(PlanBuilder& builder);
void plan_deploy(PlanBuilder& builder);  // cpp, onnx, serving, lite

}  // namespace assay::chain::plan
