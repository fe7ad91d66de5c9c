#include "schedule/memory_use.h"

#include <algorithm>
#include <limits>

namespace assay {
namespace {

// The part of the budget for cases that run beside a case that fits no budget.
constexpr std::uint64_t kPartBeside = 8;
// A case above this part of the budget is leased only to a slot that has nothing else to do.
constexpr std::uint64_t kPartAhead = 16;

bool needs_whole(const wire::JobT& job) {
  return job.attempt.memory == wire::MemoryNeed::whole_device;
}

}  // namespace

// Whether cases need memory of the host. They do not if all lanes run on GPUs.
bool MemoryUse::on_host() const { return budget_.all < std::numeric_limits<std::uint64_t>::max(); }

bool MemoryUse::has_room(const wire::JobT& job) const {
  const std::uint64_t bytes = job.test_case.bytes;
  if (whole_host_) return false;
  if (needs_whole(job) && on_host()) return running_ == 0;
  const std::uint64_t beside = budget_.all / kPartBeside;
  if (bytes > budget_.all) return !over_budget_ && in_use_ <= beside;
  const std::uint64_t most = over_budget_ ? beside : budget_.all;
  return bytes <= most && in_use_ <= most - bytes;
}

// An idle GPU takes any case.
bool MemoryUse::gpu_admits(const OnGpu& gpu, const wire::JobT& job) const {
  if (gpu.cases == 0) return true;
  const std::uint64_t bytes = job.test_case.bytes;
  return !gpu.whole && !needs_whole(job) && bytes <= budget_.each_gpu &&
         gpu.bytes <= budget_.each_gpu - bytes;
}

bool MemoryUse::admits(std::uint32_t slot, const wire::JobT& job) const {
  return has_room(job) && (!on_gpus() || gpu_admits(on_gpu_[slot % on_gpu_.size()], job));
}

bool MemoryUse::may_wait_in_slot(const wire::JobT& job) const {
  return job.test_case.bytes <= budget_.all / kPartAhead;
}

void MemoryUse::take(std::uint32_t slot, wire::JobT& job) {
  const std::uint64_t bytes = job.test_case.bytes;
  const bool over_budget = bytes > budget_.all;
  if (!needs_whole(job)) {
    const bool nothing_else = running_ == 0 && !on_gpus();
    job.attempt.memory =
        over_budget && nothing_else ? wire::MemoryNeed::over_budget : wire::MemoryNeed::estimated;
  }
  if (over_budget) {
    over_budget_ = true;
    beside_it_ = running_ > 0;
  } else {
    in_use_ += bytes;
    beside_it_ = true;
  }
  ++running_;
  whole_host_ = needs_whole(job) && on_host();
  if (!on_gpus()) return;
  OnGpu& gpu = on_gpu_[slot % on_gpu_.size()];
  gpu.bytes += bytes;
  gpu.whole = needs_whole(job);
  ++gpu.cases;
}

bool MemoryUse::release(std::uint32_t slot, const wire::JobT& job) {
  const std::uint64_t bytes = job.test_case.bytes;
  if (running_ > 0) --running_;
  whole_host_ = whole_host_ && !needs_whole(job);
  if (on_gpus()) {
    OnGpu& gpu = on_gpu_[slot % on_gpu_.size()];
    gpu.bytes -= std::min(gpu.bytes, bytes);
    if (gpu.cases > 0) --gpu.cases;
    gpu.whole = gpu.whole && !needs_whole(job);
  }
  if (bytes <= budget_.all) {
    in_use_ -= std::min(in_use_, bytes);
    return false;
  }
  over_budget_ = false;
  return !on_gpus() && !beside_it_;
}

}  // namespace assay
