#include "schedule/memory_use.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <string_view>

#include "case/case_traits.h"

namespace assay {
namespace {

// The part of the budget for cases that run beside a case that fits no budget.
constexpr std::uint64_t kPartBeside = 8;
// A case above this part of the budget is leased only to a slot that has nothing else to do.
constexpr std::uint64_t kPartAhead = 16;

// A case whose kind is not known and whose estimate is above this part of a GPU's budget has its
// lanes one after the other, so that it may need twice its estimate.
constexpr std::uint64_t kPartTogether = 2;
// What such a case needs: in the end one lane computes, and the other keeps its results.
constexpr double kShareApart = 0.75;
// Cases with a smaller estimate teach nothing and keep it: they always fit.
constexpr std::uint64_t kLearnFrom = std::uint64_t{64} << 20;
// A lane also needs some memory beside its tensors, and the next case of a kind may need more.
constexpr double kMargin = 1.1;
constexpr double kLeastOfEstimate = 0.25;
// Integers have no gradients, and few calls make larger ones of them.
constexpr double kIntegersOfEstimate = 0.5;
// A case that needs much more than others of its kind counts less with each of them.
constexpr double kForgets = 0.1;

// The API and the dtype of the first tensor.
std::size_t kind_of(std::string_view text) {
  const std::hash<std::string_view> hash;
  return hash(api_of(text)) * 31 + hash(first_dtype(text));
}

// bool is none: sums of it are int64.
bool has_only_integers(std::string_view text) {
  const std::array<std::string_view, 3> others = {"float", "complex", "bool"};
  return text.find("int") != text.npos &&
         std::none_of(others.begin(), others.end(),
                      [&](std::string_view dtype) { return text.find(dtype) != text.npos; });
}

std::uint64_t part_of(std::uint64_t bytes, double share) {
  return static_cast<std::uint64_t>(std::min(static_cast<double>(bytes) * share, 1e18));
}

// What a lane's need counts for in the budget, in which both lanes run.
std::uint64_t counted(std::uint64_t lane_bytes, wire::Start start) {
  return start == wire::Start::test_lane_first ? part_of(lane_bytes, kShareApart) : lane_bytes;
}

bool needs_whole(const wire::JobT& job) {
  return job.attempt.memory == wire::MemoryNeed::whole_device;
}

}  // namespace

// Whether cases need memory of the host. They do not if all lanes run on GPUs.
bool MemoryUse::on_host() const { return budget_.all < std::numeric_limits<std::uint64_t>::max(); }

// Beside a case that does not fit, only small ones run.
bool MemoryUse::Taken::leaves(std::uint64_t needed, std::uint64_t budget) const {
  const std::uint64_t beside = budget / kPartBeside;
  if (needed > budget) return !over && bytes <= beside;
  const std::uint64_t most = over ? beside : budget;
  return needed <= most && bytes <= most - needed;
}

void MemoryUse::Taken::take(std::uint64_t needed, std::uint64_t budget) {
  over = over || needed > budget;
  if (needed <= budget) bytes += needed;
}

void MemoryUse::Taken::release(std::uint64_t needed, std::uint64_t budget) {
  over = over && needed <= budget;
  if (needed <= budget) bytes -= std::min(bytes, needed);
}

bool MemoryUse::has_room(const wire::JobT& job) const {
  if (whole_host_) return false;
  if (needs_whole(job) && on_host()) return running_ == 0;
  return taken_.leaves(job.test_case.bytes, budget_.all);
}

void MemoryUse::learn(const wire::JobT& ran, std::uint64_t bytes) {
  const std::uint64_t estimate = ran.test_case.bytes;
  if (!on_gpus() || bytes == 0 || estimate < kLearnFrom) return;
  const double took = kMargin * static_cast<double>(bytes) / static_cast<double>(estimate);
  double& known = learnt_.try_emplace(kind_of(ran.test_case.text), took).first->second;
  known = std::max(took, known - kForgets * (known - took));
}

// What a case needs on its GPU, as far as other cases of its kind tell.
MemoryUse::GpuNeed MemoryUse::gpu_need(const wire::JobT& job) const {
  GpuNeed need{job.test_case.bytes};
  double share = 1;
  if (need.lane >= kLearnFrom) {
    const auto found = learnt_.find(kind_of(job.test_case.text));
    const bool known = found != learnt_.end();
    if (known) share = std::max(found->second, kLeastOfEstimate);
    if (!known && has_only_integers(job.test_case.text)) share = kIntegersOfEstimate;
    need.lane = part_of(need.lane, share);
    const std::uint64_t together = known ? budget_.each_gpu : budget_.each_gpu / kPartTogether;
    if (!on_host() && need.lane > together) need.start = wire::Start::test_lane_first;
    need.whole = !on_host() && known && need.lane > std::max(budget_.gpu_alone, budget_.each_gpu);
  }
  return need;
}

// An idle GPU takes any case.
bool MemoryUse::gpu_admits(const OnGpu& gpu, const wire::JobT& job) const {
  if (gpu.cases == 0) return true;
  if (gpu.whole || needs_whole(job)) return false;
  const GpuNeed need = gpu_need(job);
  return !need.whole && gpu.taken.leaves(counted(need.lane, need.start), budget_.each_gpu);
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
  taken_.take(bytes, budget_.all);
  beside_it_ = !over_budget || running_ > 0;
  ++running_;
  whole_host_ = needs_whole(job) && on_host();
  if (!on_gpus()) return;
  const GpuNeed need = gpu_need(job);
  job.attempt.gpu_bytes = need.lane;
  job.attempt.start = need.start;
  if (need.whole) job.attempt.memory = wire::MemoryNeed::whole_device;
  OnGpu& gpu = on_gpu_[slot % on_gpu_.size()];
  gpu.taken.take(counted(need.lane, need.start), budget_.each_gpu);
  gpu.whole = needs_whole(job);
  ++gpu.cases;
}

bool MemoryUse::release(std::uint32_t slot, const wire::JobT& job) {
  const std::uint64_t bytes = job.test_case.bytes;
  if (running_ > 0) --running_;
  whole_host_ = whole_host_ && !needs_whole(job);
  if (on_gpus()) {
    OnGpu& gpu = on_gpu_[slot % on_gpu_.size()];
    gpu.taken.release(counted(job.attempt.gpu_bytes, job.attempt.start), budget_.each_gpu);
    if (gpu.cases > 0) --gpu.cases;
    gpu.whole = gpu.whole && !needs_whole(job);
  }
  taken_.release(bytes, budget_.all);
  return bytes > budget_.all && !on_gpus() && !beside_it_;
}

}  // namespace assay
