#pragma once

// Admits cases while the estimated memory of all running cases fits the budgets.
//
// Cases that fit no budget run one at a time. Small cases may run beside such a case, because
// estimates are generous and other slots should not be idle. A case that ran out of memory before
// runs alone: on its GPU, or on the host if one of its lanes runs there.
//
// What large cases took on a GPU corrects the estimates of later ones with the same API and dtype.

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "wire/job.h"

namespace assay {

// Limits for the cases that run at the same time, in bytes of one lane (Case.bytes). Slot i uses
// GPU i modulo `gpus`.
struct MemoryBudget {
  std::uint64_t all = 0;
  std::uint64_t each_gpu = 0;
  std::size_t gpus = 0;
  std::uint64_t gpu_alone = 0;  // of a GPU, while only one lane works there and the others idle
};

class MemoryUse {
 public:
  explicit MemoryUse(const MemoryBudget& budget) : budget_(budget), on_gpu_(budget.gpus) {}

  bool on_gpus() const { return !on_gpu_.empty(); }
  // Whether the case may start in this slot now.
  bool admits(std::uint32_t slot, const wire::JobT& job) const;
  // Whether the case is small enough to wait behind others in its slot.
  bool may_wait_in_slot(const wire::JobT& job) const;

  // Counts a case that starts. Sets its MemoryNeed, unless it needs the whole device anyway.
  void take(std::uint32_t slot, wire::JobT& job);
  // Counts a case that has ended or whose slot died. Returns whether the case fits no budget and
  // nothing ran beside it. Always false on GPUs, because other programs use them too.
  bool release(std::uint32_t slot, const wire::JobT& job);

  // A lane took this many bytes on its GPU for a case.
  void learn(const wire::JobT& ran, std::uint64_t bytes);

 private:
  // What running cases take from a budget.
  struct Taken {
    std::uint64_t bytes = 0;  // by cases that fit the budget
    bool over = false;        // a case that does not fit it is running
    bool leaves(std::uint64_t needed, std::uint64_t budget) const;
    void take(std::uint64_t needed, std::uint64_t budget);
    void release(std::uint64_t needed, std::uint64_t budget);
  };
  struct OnGpu {
    Taken taken;
    std::size_t cases = 0;
    bool whole = false;  // its only case needs the whole device
  };
  struct GpuNeed {
    std::uint64_t lane = 0;  // bytes
    wire::Start start = wire::Start::together;
    bool whole = false;  // lanes that idle must end first
  };
  bool on_host() const;
  bool has_room(const wire::JobT& job) const;
  bool gpu_admits(const OnGpu& gpu, const wire::JobT& job) const;
  GpuNeed gpu_need(const wire::JobT& job) const;

  MemoryBudget budget_;
  Taken taken_;              // on the host
  bool beside_it_ = false;   // another case runs, or ran, beside the one that does not fit
  std::size_t running_ = 0;  // cases in all slots
  bool whole_host_ = false;  // a case runs that needs the whole host
  std::vector<OnGpu> on_gpu_;
  std::unordered_map<std::size_t, double> learnt_;  // what cases of a kind take, in estimates
};

}  // namespace assay
