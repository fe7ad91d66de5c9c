#include "slot/slot_memory.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/system_memory.h"
#include "slot/timing.h"

namespace assay {
namespace {

// Memory of shared inputs that is kept for the next ones. If less than half of the machine's memory
// is left, it is less, as in lanes (src/native/memory.cc).
constexpr std::uint64_t kKeep = std::uint64_t{5} << 30;
constexpr std::uint64_t kKeepIfShort = std::uint64_t{512} << 20;
// Smaller cases are never compared with the machine's memory.
constexpr std::uint64_t kMayExceedFrom = std::uint64_t{1} << 30;
// Memory still comes back while each look finds this much more of it.
constexpr std::uint64_t kComesBackBytes = std::uint64_t{64} << 20;
constexpr std::chrono::milliseconds kComesBackLook{50};
constexpr std::int64_t kComesBackLimitNs = 5'000'000'000;

std::shared_ptr<SharedInputs> shared_inputs(const SlotConfig& config) {
  if (is_timed(config.settings) ||
      std::count_if(config.lanes.begin(), config.lanes.end(), on_cpu) < 2) {
    return nullptr;
  }
  auto inputs = SharedInputs::create();
  return inputs ? std::make_shared<SharedInputs>(std::move(*inputs)) : nullptr;
}

}  // namespace

bool on_cpu(const wire::LaneSpecT& spec) { return !gpu_number(spec.device); }

SlotMemory::SlotMemory(const SlotConfig& config)
    : some_lane_on_cpu_(std::any_of(config.lanes.begin(), config.lanes.end(), on_cpu)),
      inputs_(shared_inputs(config)) {}

void SlotMemory::begin_batch(std::uint64_t bytes) {
  if (!inputs_) return;
  inputs_->renew();
  trim(bytes);
}

bool SlotMemory::keeps_much() const { return inputs_ && inputs_->held() > kKeepIfShort; }

void SlotMemory::trim(std::uint64_t wanted) {
  if (inputs_->held() <= std::max(wanted, kKeepIfShort)) return;
  const auto memory = system_memory();
  const bool is_short = memory && memory->available < memory->total / 2;
  inputs_->trim(std::max(wanted, is_short ? kKeepIfShort : kKeep));
}

void SlotMemory::give_back() {
  if (inputs_) inputs_->trim(0);
}

bool SlotMemory::may_exceed_host(const wire::JobT& job) const {
  if (job.test_case.bytes < kMayExceedFrom || !some_lane_on_cpu_) return false;
  const auto memory = system_memory();
  return memory && job.test_case.bytes > memory->total;
}

void SlotMemory::wait_for_others() {
  std::uint64_t before = 0;
  const std::int64_t until = monotonic_ns() + kComesBackLimitNs;
  while (monotonic_ns() < until) {
    const auto memory = system_memory();
    if (!memory || memory->available <= before + kComesBackBytes) return;
    before = memory->available;
    std::this_thread::sleep_for(kComesBackLook);
  }
}

}  // namespace assay
