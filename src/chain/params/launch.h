#pragma once

// The contents of a launching script (launch_script.h) and of its run_benchmark.sh.

#include <string>
#include <vector>

#include "chain/params/params_text.h"

namespace assay::chain::params {

// A command that a launching script runs before the training (prepare.sh; `sed -i`).
struct LaunchCommand {
  int line = 1;
  std::vector<std::string> argv;
};

// A further training of the same script, such as one with PROFILING=true. It has no speed record.
struct LaunchRepeat {
  LaunchCommand command;
  std::vector<std::string> environment;
};

struct LaunchScript {
  std::string path;
  std::string directory;  // the script's first `cd`, relative to the checkout; "": none
  std::vector<LaunchCommand> prepares;
  LaunchCommand train;                   // bash …/run_benchmark.sh ARGUMENT…
  std::vector<std::string> environment;  // "NAME=value" for its commands
  std::vector<LaunchRepeat> repeats;     // trainings after the first
  std::string run_path;  // path of run_benchmark.sh from where the launch is started

  // Set by `_set_params` of run_benchmark.sh:
  std::string model_item;
  std::string model_name;  // in the record: model_bs16_fp16_DP
  std::string model_repo;
  std::string batch_size;  // base_batch_size
  std::string fp_item;
  std::string run_mode;
  std::string device_num;       // N4C32: 4 machines, 32 cards
  std::string keyword;          // the log has the speed after this word
  std::string convergence_key;  // the log has the loss after this word; may be empty
  std::string speed_unit;
  std::string model_mode;       // the formula for the speed; "": the default
  bool is_large_model = false;  // the log has one speed, of the whole training
  int skip_steps = 0;           // speeds at the log's start that do not count
  int machines = 1;
  int cards = 1;                   // on all machines
  int silence_seconds = 0;         // silence of the log after which training is ended; 0: never
  int limit_seconds = 0;           // the script's own `timeout`; 0: none
  std::string log_name;            // of the training, in TRAIN_LOG_DIR
  std::string profiling_log_name;  // of PROFILING=true, in PROFILING_LOG_DIR; may be empty
};

// An error or warning in one of the two files.
struct LaunchProblem {
  std::string file;
  Problem problem;
};

struct ReadLaunch {
  LaunchScript script;                  // valid only if good()
  std::vector<LaunchProblem> problems;  // errors and warnings
  bool good() const;
};

}  // namespace assay::chain::params
