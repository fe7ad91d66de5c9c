#pragma once

// Workers as an array of Slurm jobs.

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/workers.h"

namespace assay {

struct SlurmJob {
  Workers workers;
  std::string gres;                  // "gpu:1"; "": none
  std::vector<std::string> options;  // further options of sbatch: "--partition=gpu"
  std::vector<std::string> lines;    // shell lines before the worker: "module load cuda"
  std::string launcher;              // words before the worker: "apptainer exec --nv assay.sif"
};

// Returns a script for sbatch. Slurm signals a worker a minute before its time limit, or when its
// node is preempted; the worker then returns its unfinished cases. A worker whose node died is
// restarted.
std::string slurm_script(const SlurmJob& job);

// Chains of models, each in an allocation of its own.
struct SlurmChains {
  std::string name = "assay";
  std::string program;                 // path of assay on the machines
  std::string list;                    // a file with one params file per line
  std::size_t models = 0;              // number of its lines
  std::uint32_t at_once = 1;           // most allocations at a time
  std::uint32_t machines = 1;          // per allocation; more than one train together
  std::string mode;                    // "lite_train_lite_infer"
  std::string log_dir;                 // has one log per model
  std::vector<std::string> arguments;  // passed to each `assay chain run`
};

// Returns a script for sbatch, with gres, options, lines and launcher of `job`. A model that Slurm
// restarts keeps the stages that passed.
std::string slurm_chain_script(const SlurmChains& chains, const SlurmJob& job);

}  // namespace assay
