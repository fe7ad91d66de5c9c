#pragma once

// Workers as an array of Slurm jobs.

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

}  // namespace assay
