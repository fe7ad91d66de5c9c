#pragma once

// The cases that a slot holds, cut into batches, and the trials that a batch consists of.

#include <deque>
#include <string>
#include <vector>

#include "slot/config.h"
#include "slot/kernel_support.h"
#include "wire/job.h"

namespace assay {

// Whether it is a further attempt, in lanes for retries.
bool is_retry(const wire::JobT& job);
// Whether it may need all memory of its device.
bool needs_much_memory(const wire::JobT& job);

class Batching {
 public:
  // Keeps a reference to `config`. `on_gpu`: results are compared on a GPU.
  Batching(const SlotConfig& config, bool on_gpu);

  void add(wire::JobT job) { waiting_.push_back(std::move(job)); }
  void clear() { waiting_.clear(); }
  bool empty() const { return waiting_.empty(); }

  // The next cases that lanes run together; none if none wait.
  std::vector<wire::JobT> next();
  // Whether the next case is a retry in the same process as this batch.
  bool is_followed(const std::vector<wire::JobT>& batch) const;
  // Each case of the batch under each value regime, and the same again for each planted fault.
  std::vector<wire::JobT> trials_of(const std::vector<wire::JobT>& batch);
  // Notes how a trial ended in the test lane.
  void learn(const wire::JobT& trial, const LaneResult& ending);

 private:
  bool runs_alone(const wire::JobT& job) const;
  bool plants_faults() const { return !config_.settings.mutants.empty(); }

  const SlotConfig& config_;
  bool on_gpu_;
  std::vector<std::string> regimes_;  // usual values first
  std::deque<wire::JobT> waiting_;
  KernelSupport kernel_support_;  // of the test lane, whichever process it is
};

}  // namespace assay
