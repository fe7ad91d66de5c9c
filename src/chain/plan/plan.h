#pragma once

// The plan of a chain: stages in order, each with its argv, environment, log, and the earlier
// stages that it needs.

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay::chain::plan {

enum class StageKind { prepare, train, eval, export_model, convert, server, infer, compare };
std::string_view name(StageKind kind);

struct Stage {
  std::size_t index = 0;
  std::string name;  // unique in a plan; -k filters by it
  StageKind kind = StageKind::train;
  std::string command;  // the command as bash shows it, with its blanks
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value", added to assay's own
  std::string directory;                 // working directory; "": the model's folder
  std::string log;                       // unique in a plan
  std::vector<std::size_t> needs;        // indices of stages that must have passed
  std::string input;                     // prefix of the files of those stages that this one reads
  std::string output;                    // prefix of the files that it must write; "": none
  std::string device;  // "cpu", "gpu 0,1"; stages on different devices may run at the same time
  bool asks_for_gpu = false;       // an inference that must use a GPU
  std::vector<std::string> hosts;  // more than one: the stage runs on all of these machines
  bool on_cpu = false;             // gloo instead of NCCL between hosts
  std::string loss_pattern;        // a regular expression whose first group is a loss; "": none
  bool may_stop_early = false;     // fewer epochs and steps than asked for are right
  std::string needs_device;        // a device that Paddle must see, such as npu
};

struct Plan {
  std::string model;
  std::string mode;
  std::string folder;  // of assay's logs and results
  std::vector<Stage> stages;
  std::vector<std::string> warnings;
};

// Keeps the stages that a filter (-k) names and the stages that these need; all without a filter.
// It is an error if no stage matches.
Result<Plan> filtered(Plan plan, const std::vector<std::string>& filters);

// For --dry-run, to people: each stage's name, needs, and shell command.
std::string describe_plan(const Plan& plan);
// To programs: one JSON object per line, {"v":1,"stage","kind","argv","env","log","needs",…}.
std::string plan_json_lines(const Plan& plan);

}  // namespace assay::chain::plan
