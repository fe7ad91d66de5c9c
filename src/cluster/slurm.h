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

}  // namespace assay
