#pragma once

// The plan of a params file or a launching script: stages in order, each with its argv,
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
  bool exact_log = false;                // the log's name must not be made unique
  bool shows_log = true;                 // the status line shows "> log 2>&1" after the command
  std::vector<std::size_t> needs;        // indices of stages that must have passed
  std::string input;                     // prefix of the files of those stages that this one reads
  std::string output;                    // prefix of the files that it must write; "": none
  std::string device;  // "cpu", "gpu 0,1"; stages on different devices may run at the same time
  bool asks_for_gpu = false;               // an inference that must use a GPU
  std::vector<std::string> hosts;          // more than one: the stage runs on all of these machines
  bool on_cpu = false;                     // gloo instead of NCCL between hosts
  bool expands = false;                    // words with `*` become the newest file that matches
  std::string stdin_file;                  // its standard input; "": none
  std::optional<std::size_t> same_log_as;  // a stage whose log must have the same words
  std::string needs_program;               // without this program: `unavailable: needs X`
  std::string needs_module;                // a Python module, likewise
  std::string needs_device;                // a device that Paddle sees, such as npu, likewise
  std::size_t needs_gpus = 0;              // number of GPUs on this machine, by NVML
  std::string needs_variable;              // variable that the user sets on each of many machines
  std::string follows;    // a log that the stage writes itself; its growth counts as output
  std::string keyword;    // its log has the speed after this word
  double idle_limit = 0;  // seconds without output until it is ended; 0: the run's limit
  std::vector<std::string> own_argv;  // assay's own command if the script argv[1] does not exist:
                                      // these words, then the script's arguments
  bool tells_speed = false;           // writes the speed record of the training that it needs
};

struct Plan {
  std::string model;
  std::string mode;
  std::string folder;          // "./test_tipc/output/<model>/<mode>"
  std::string results_log;     // log of TIPC's status lines
  bool log_in_status = false;  // the newer status line, which ends with the log's path
  std::vector<Stage> stages;
  std::string nothing;  // why a plan without stages is right; "": it is an error
  std::vector<std::string> warnings;
  std::vector<std::pair<std::string, std::string>>
      files;  // path and text of files to write before a run
};

struct PlanOptions {
  std::string params_path;  // as the user wrote it; some kinds pass it to their program
  // The third argument of the bash: CUDA_VISIBLE_DEVICES of whole_infer, the training of
  // benchmark_train.
  std::string third;
  std::string device;  // trains and infers on this instead of the file's GPUs; "": the file's
  bool fix = false;    // follow the file where the suite's bash does not
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
