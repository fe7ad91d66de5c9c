#pragma once

// The plan of a params file: stages in order, each with its argv,
// environment, log, and the earlier stages that it needs. Planning starts nothing and reads only
// the params.

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay::chain::plan {

enum class StageKind { prepare, train, eval, export_model, convert, server, infer, compare };
std::string_view name(StageKind kind);

struct Stage {
  std::size_t index = 0;
  std::string name;  // "<cell>/<kind>[ <variant>]", unique in a plan; -k filters by it
  StageKind kind = StageKind::train;
  std::string command;  // the command as bash shows it, with its blanks
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value", added to assay's own
  std::string directory;                 // working directory; "": the model's folder
  std::string log;                       // unique in a plan
  bool shows_log = true;                 // the status line shows "> log 2>&1" after the command
  std::vector<std::size_t> needs;        // indices of stages that must have passed
  std::string input;                     // prefix of the files of those stages that this one reads
  std::string output;                    // prefix of the files that it must write; "": none
  std::string device;  // "cpu", "gpu 0,1"; stages on different devices may run at the same time
  bool asks_for_gpu = false;       // an inference that must use a GPU
  std::vector<std::string> hosts;  // more than one: the stage runs on all of these machines
  bool on_cpu = false;             // gloo instead of NCCL between hosts
  std::string needs_device;        // a device that Paddle must see, such as npu
};

struct Plan {
  std::string model;
  std::string mode;
  std::string folder;          // "./test_tipc/output/<model>/<mode>"
  std::string results_log;     // log of TIPC's status lines
  bool log_in_status = false;  // the newer status line, which ends with the log's path
  std::vector<Stage> stages;
  std::vector<std::string> warnings;
};

struct PlanOptions {
  std::string params_path;  // as the user wrote it
  std::string output_root;  // folder of all results; "": ./test_tipc/output
  std::string third;        // CUDA_VISIBLE_DEVICES of whole_infer
  std::string device;       // trains and infers on this instead of the file's GPUs; "": the file's
  bool fallback_checkpoint = false;  // use the checkpoint that a training without evaluation writes
  std::string python;                // replaces the params file's interpreter
  std::string
      dynamic;  // dynamic inference with the trained weights; {weights} and {images} are filled in
  std::string self;           // path of assay, which compares it with each static inference in fp32
  std::string prepare;        // a script to run first: bash SCRIPT FILE MODE
  bool fleet_on_cpu = false;  // many machines train on their CPUs, whatever gpu_list says
  int ps_servers = 0;         // above 0: Parameter Server mode with so many servers per machine
  int ps_trainers = 1;        // trainers per machine
  std::vector<std::string>
      filters;  // -k: keep stages whose name contains one of these, and the stages that they need
};

// The status line for results_python.log, with escape sequences, without newline.
std::string status_line(const Plan& plan, const Stage& stage, bool passed);

}  // namespace assay::chain::plan
