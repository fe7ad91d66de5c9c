#pragma once

// Admits cases while the estimated memory of all that run fits the budgets.
//
// Of the cases that fit no budget, one runs at a time. Small ones may run beside it, because
// estimates are generous and other slots should not be idle. A case that ran out of memory before
// runs with nothing beside it: on its GPU, or on the host if some lane sits there.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "wire/job.h"

namespace assay {

// What the cases of all slots may need at once, in bytes of one lane (Case.bytes). A slot also has
// its share of a GPU; slots are dealt out over the GPUs in turn.
struct MemoryBudget {
  std::uint64_t all = 0;
  std::uint64_t each_gpu = 0;
  std::size_t gpus = 0;
};

class MemoryUse {
 public:
  explicit MemoryUse(const MemoryBudget& budget) : budget_(budget), on_gpu_(budget.gpus) {}

  bool on_gpus() const { return !on_gpu_.empty(); }
  // Whether the case may start in this slot now.
  bool admits(std::uint32_t slot, const wire::JobT& job) const;
  // Whether the case is small enough to wait behind others in its slot.
  bool may_wait_in_slot(const wire::JobT& job) const;

  // The case starts. Sets its MemoryNeed, unless it needs the whole device anyway.
  void take(std::uint32_t slot, wire::JobT& job);
  // The case has ended, or its slot died. Returns whether it fits no budget and nothing ran beside
  // it; never on GPUs, which other programs use as well.
  bool release(std::uint32_t slot, const wire::JobT& job);

 private:
  struct OnGpu {
    std::uint64_t bytes = 0;
    std::size_t cases = 0;
    bool whole = false;  // its only case needs the whole device
  };
  bool on_host() const;
  bool has_room(const wire::JobT& job) const;
  bool gpu_admits(const OnGpu& gpu, const wire::JobT& job) const;

  MemoryBudget budget_;
  std::uint64_t in_use_ = 0;  // by cases that fit the budget
  bool over_budget_ = false;  // a case runs that fits no budget …
  bool beside_it_ = false;    // … and another one runs, or ran, beside it
  std::size_t running_ = 0;   // cases, of all slots
  bool whole_host_ = false;   // a case runs that needs the whole host
  std::vector<OnGpu> on_gpu_;
};

}  // namespace assay
