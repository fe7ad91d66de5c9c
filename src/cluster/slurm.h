#pragma once

// Workers as an array of Slurm jobs.

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/workers.h"

namespace assay {

struct SlurmJob {
  Workers workers;
  std::string gres;                  // "gpu:1"; empty: none
  std::vector<std::string> options;  // more of sbatch: "--partition=gpu"
  std::vector<std::string> lines;    // of shell, before the worker: "module load cuda"
  std::string launcher;              // words before the worker: "apptainer exec --nv assay.sif"
};

// For sbatch. A worker is told a minute before its time is over, or when its node is wanted for
// another, and gives back what it has not ended; one whose node has died is started again.
std::string slurm_script(const SlurmJob& job);

// Models, each run through its chain in an allocation of its own.
struct SlurmChains {
  std::string name = "assay";
  std::string program;                 // assay, where the machines find it
  std::string list;                    // a file that names a params file a line
  std::size_t models = 0;              // its lines
  std::uint32_t at_once = 1;           // so many allocations at most
  std::uint32_t machines = 1;          // of each: more than one train together
  std::string mode;                    // "lite_train_lite_infer"
  std::string log_dir;                 // of all
  std::vector<std::string> arguments;  // of each `assay chain run`
};

// For sbatch, with gres, options, lines and launcher of `job`. A model that Slurm starts again,
// because its node died or was wanted for another, keeps the stages that had passed.
std::string slurm_chain_script(const SlurmChains& chains, const SlurmJob& job);

}  // namespace assay
