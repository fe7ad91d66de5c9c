#include "slot/batching.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "slot/mutants.h"
#include "slot/timing.h"
#include "wire/settings.h"

namespace assay {
namespace {

// Small cases share a batch, so that they share the switches between slot and lanes. A large case
// has a batch of its own, so that it needs no memory beside its own and lanes can lend results.
constexpr std::size_t kBatchJobs = 32;
constexpr std::uint64_t kBatchBytes = std::uint64_t{16} << 20;
// Lanes on a GPU answer while their GPU works, so that the slot compares meanwhile. The first call
// of a kernel takes a lane as long as some ten cases: in short batches the other lane would wait.
constexpr std::size_t kGpuBatchJobs = 256;
constexpr std::uint64_t kGpuBatchBytes = std::uint64_t{128} << 20;

std::vector<std::string> regimes_of(std::string_view setting) {
  std::vector<std::string> found{std::string(wire::kUsualValues)};
  if (setting.empty()) setting = wire::kAllValues;
  while (!setting.empty()) {
    const std::size_t end = std::min(setting.find(','), setting.size());
    const std::string_view name = setting.substr(0, end);
    if (!name.empty() && name != wire::kUsualValues) found.emplace_back(name);
    setting.remove_prefix(std::min(end + 1, setting.size()));
  }
  return found;
}

}  // namespace

bool is_retry(const wire::JobT& job) { return job.attempt.isolation != wire::Isolation::shared; }

bool needs_much_memory(const wire::JobT& job) {
  return job.attempt.memory != wire::MemoryNeed::estimated;
}

Batching::Batching(const SlotConfig& config, bool on_gpu)
    : config_(config), on_gpu_(on_gpu), regimes_(regimes_of(config.settings.values)) {}

bool Batching::runs_alone(const wire::JobT& job) const {
  return is_retry(job) || plants_faults() || is_timed(config_.settings);
}

std::vector<wire::JobT> Batching::next() {
  std::vector<wire::JobT> batch;
  std::uint64_t bytes = 0;
  const std::size_t most = on_gpu_ ? kGpuBatchJobs : kBatchJobs;
  const std::uint64_t most_bytes = on_gpu_ ? kGpuBatchBytes : kBatchBytes;
  while (!waiting_.empty() && batch.size() < most) {
    wire::JobT& next = waiting_.front();
    const std::uint64_t needed = next.test_case.bytes;
    const bool starts_batch = is_retry(next) || needs_much_memory(next) || needed > kBatchBytes ||
                              bytes + needed > most_bytes;
    if (starts_batch && !batch.empty()) break;
    bytes += needed;
    batch.push_back(std::move(next));
    waiting_.pop_front();
    if (runs_alone(batch.back())) break;
  }
  return batch;
}

bool Batching::is_followed(const std::vector<wire::JobT>& batch) const {
  if (waiting_.empty()) return false;
  const wire::AttemptT& next = waiting_.front().attempt;
  return next.isolation == wire::Isolation::shared_retry &&
         next.lease == batch.front().attempt.lease;
}

std::vector<wire::JobT> Batching::trials_of(const std::vector<wire::JobT>& batch) {
  std::vector<wire::JobT> trials;
  for (const wire::JobT& job : batch) {
    // Planted faults tell nothing about a lane's kernel_support.
    wire::Start start = plants_faults() ? wire::Start::together
                                        : std::max(job.attempt.start, kernel_support_.start(job));
    // Two lanes need more memory than one.
    if (needs_much_memory(job)) start = std::max(start, wire::Start::test_lane_first);
    for (const std::string& mutant : mutants_of(config_.settings, job.test_case.id)) {
      for (const std::string& values : regimes_) {
        const bool usual = values == wire::kUsualValues;
        // Cases below kMostElements fit; lanes skip the others by themselves. Long sums of constant
        // values may be twice as large.
        const std::uint64_t most = values == "constant" ? 2 * kBatchBytes : kBatchBytes;
        if (!usual && job.test_case.bytes > most) continue;
        wire::JobT& trial = trials.emplace_back(job);
        trial.trial.values = values;
        trial.trial.mutant = mutant;
        // The first trial shows whether a kernel is missing, for all of them.
        const bool first = usual && mutant.empty();
        trial.attempt.start = first ? start : std::min(start, wire::Start::test_lane_first);
      }
    }
  }
  return trials;
}

void Batching::learn(const wire::JobT& trial, const LaneResult& ending) {
  if (plants_faults() || trial.trial.values != wire::kUsualValues) return;
  kernel_support_.learn(trial, ending);
}

}  // namespace assay
