#pragma once

// What assay runs of a params file or a launching script: stages in order, each with its argv,
// environment, log, and what it needs from which earlier stage. Planning starts nothing and reads
// nothing but the params.

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
  std::string name;  // "<cell>/<kind>[ <variant>]", unique in a plan; what -k looks at
  StageKind kind = StageKind::train;
  std::string command;  // as the bash would show it, with its blanks
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value" on top of ours
  std::string directory;                 // working directory; empty: the model's folder
  std::string log;                       // unique in a plan
  bool exact_log = false;                // its name is taken as it is
  bool shows_log = true;                 // the status line shows "> log 2>&1" after the command
  std::vector<std::size_t> needs;        // stages that must have passed
  std::string input;   // what the stage reads of those: files that start with this path
  std::string output;  // what it must have written when it passes; empty: nothing is promised
  std::string device;  // stages on different devices may run at one time: "cpu", "gpu 0,1"
  bool asks_for_gpu = false;               // an inference that was told to use a GPU
  std::vector<std::string> hosts;          // more than one: the stage runs on all of them
  bool on_cpu = false;                     // gloo instead of NCCL between hosts
  bool expands = false;                    // words with `*` become the newest file that they match
  std::string stdin_file;                  // what it reads; none: nothing
  std::optional<std::size_t> same_log_as;  // a stage whose log must hold the same words
  std::string needs_program;               // without it: `unavailable: needs X`
  std::string needs_module;                // the same for a Python module
  std::string needs_device;                // and for a device that Paddle sees, such as npu
  std::size_t needs_gpus = 0;              // so many on this machine, by NVML
  std::string needs_variable;              // set by who starts the run on each of many machines
  std::string follows;                     // a log that it writes itself: its growth is output too
  std::string keyword;                     // the speed stands behind this word of its log
  double idle_limit = 0;                   // seconds of silence that end it; 0: the run's limit
  std::vector<std::string> own_argv;       // ours, where the script (argv[1]) is not there: these
                                           // words, then what follows the script
  bool tells_speed = false;                // it writes the record of the training it needs
};

struct Plan {
  std::string model;
  std::string mode;
  std::string folder;          // "./test_tipc/output/<model>/<mode>"
  std::string results_log;     // TIPC's status lines
  bool log_in_status = false;  // the newer status line, which ends with the log's path
  std::vector<Stage> stages;
  std::string nothing;  // why there may be no stage at all; empty: there must be one
  std::vector<std::string> warnings;
  std::vector<std::pair<std::string, std::string>> files;  // path and text, written before a run
};

struct PlanOptions {
  std::string params_path;  // as the user wrote it; some kinds hand it to their program
  // The bash's third argument: CUDA_VISIBLE_DEVICES of whole_infer, what to train of
  // benchmark_train.
  std::string third;
  std::string device;  // what to train and infer on instead of the file's GPUs; empty: those
  bool fix = false;    // what the file says, where the suite's bash does something else
  bool fallback_checkpoint = false;  // the checkpoint that the file names will not be made
  std::string python;                // instead of the params file's interpreter
  std::string
      dynamic;  // dynamic inference of the trained weights; {weights} and {images} are filled in
  std::string self;           // our program, which compares it with each static inference in fp32
  std::string prepare;        // a script to run first: bash SCRIPT FILE MODE
  bool fleet_on_cpu = false;  // many machines train on their CPUs, whatever gpu_list says
  int ps_servers = 0;         // more than 0: Parameter Server mode, with so many servers a machine
  int ps_trainers = 1;        // and so many trainers a machine
  std::vector<std::string> filters;  // -k: stages whose name holds one of these, and their needs
};

// The status line of results_python.log, escape sequences included, without its newline.
std::string status_line(const Plan& plan, const Stage& stage, bool passed);

}  // namespace assay::chain::plan
