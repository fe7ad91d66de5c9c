#pragma once

// What a launching script says (launch_script.h), and the run_benchmark.sh that it names.

#include <string>
#include <vector>

#include "chain/params/params_text.h"

namespace assay::chain::params {

// One command that a launching script starts before it trains (prepare.sh; `sed -i`).
struct LaunchCommand {
  int line = 1;
  std::vector<std::string> argv;
};

// A further training of the same script, such as one with PROFILING=true: no record is made of it.
struct LaunchRepeat {
  LaunchCommand command;
  std::vector<std::string> environment;
};

struct LaunchScript {
  std::string path;
  std::string directory;                 // where it goes first, from its own; empty: it stays
  std::vector<LaunchCommand> prepares;   // in its order
  LaunchCommand train;                   // bash …/run_benchmark.sh ARGUMENT…
  std::vector<std::string> environment;  // "NAME=value" that its commands see
  std::vector<LaunchRepeat> repeats;     // what is trained after it
  std::string run_path;                  // of run_benchmark.sh, from where the launch is started

  // What run_benchmark.sh makes of it in `_set_params`.
  std::string model_item;
  std::string model_name;  // of the record: model_bs16_fp16_DP
  std::string model_repo;
  std::string batch_size;  // base_batch_size
  std::string fp_item;
  std::string run_mode;
  std::string device_num;       // N4C32: 4 machines, 32 cards
  std::string keyword;          // the speed stands behind this word of the log
  std::string convergence_key;  // and the loss behind this one; may be empty
  std::string speed_unit;
  std::string model_mode;       // how the speed is reckoned; empty: as for all models
  bool is_large_model = false;  // the log holds one speed, of the whole training
  int skip_steps = 0;           // speeds at the log's beginning that do not count
  int machines = 1;
  int cards = 1;            // of all machines
  int silence_seconds = 0;  // run_benchmark.sh ends a log that is silent so long; 0: it does not
  int limit_seconds = 0;    // its own `timeout`; 0: none
  std::string log_name;     // of the training's log, in TRAIN_LOG_DIR
  std::string profiling_log_name;  // with PROFILING=true, in PROFILING_LOG_DIR; may be empty
};

// Something wrong with one of the two files.
struct LaunchProblem {
  std::string file;
  Problem problem;
};

struct ReadLaunch {
  LaunchScript script;                  // to be used only when good()
  std::vector<LaunchProblem> problems;  // and warnings
  bool good() const;
};

}  // namespace assay::chain::params
